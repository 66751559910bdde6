"""The program of `make demo`: it fills an empty folder and serves it; a port in use is reported in one line."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from playwright.sync_api import Browser, Page

from service.demo.__main__ import main
from tests.flows.chromium import expect_text, fits, follow, main_text, tab
from tests.labs.ports import free_port

pytestmark = pytest.mark.xdist_group("demo")  # its days are simulated once for all tests

DAYS = 12  # the outage and the repair are in them; the month of `make demo` takes twice the time


def try_the_report(page: Page, who: str, printed: IO[str]) -> None:
    """Subscribe a person, have the last report sent, read it where the demo says, and follow its link to the end."""
    page.get_by_role("link", name=re.compile(r"^\d{4}-W\d\d$")).nth(1).click()
    page.get_by_text("Get this report every week").click()
    page.get_by_role("button", name="Subscribe").click()
    person = page.get_by_role("textbox", name="person")
    assert person.evaluate("field => field.validity.valueMissing"), "the form says what is missing before it is sent"
    person.fill(who)
    page.get_by_role("button", name="Subscribe").click()
    expect_text(page.locator(".message, .toast"), f"Subscribed: {who} by mail: all jobs.")
    page.get_by_role("button", name=f"Send the last report now to {who} by mail").click()
    expect_text(page.locator(".message, .toast").last, "The mail is a file in the folder")
    assert fits(page)
    file = Path(next(line for line in printed if line.startswith("a mail was written: ")).split(": ")[1].strip())
    written = file.read_text(encoding="utf-8")
    assert f"To: {who}@" in written
    link = re.search(r"Unsubscribe: (http://127\.0\.0\.1:\S+)", written)
    assert link is not None
    page.goto(link[1])
    assert fits(page)
    page.get_by_role("button", name="Unsubscribe").click()
    expect_text(page.locator("main"), f"no longer sent to {who} by mail: all jobs")
    assert "Unsubscribed" in main_text(page)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, IO[str]]]:
    """Yield the address of a running demo, its folder and what it prints; it has to end when it is interrupted."""
    port, folder = free_port(), tmp_path_factory.mktemp("demo") / "demo"
    command = [sys.executable, "-m", "service.demo", "--port", str(port), "--folder", str(folder), "--days", str(DAYS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = f"http://127.0.0.1:{port}"
            assert f"{address}/" in next(line for line in process.stdout if line.startswith("Open "))
            yield address, folder, process.stdout
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0


def test_the_demo_fills_an_empty_database_and_says_what_to_open(demo: tuple[str, Path, IO[str]]) -> None:
    address, folder, printed = demo
    with urllib.request.urlopen(f"{address}/api/v1/stats?since=28d") as answer:
        stats = json.load(answer)["stats"]
    assert stats["failed"] > 150
    assert {share["key"] for share in stats["by_side"]} >= {"hardware", "system", "user"}
    assert str(folder / "mail") in next(printed), "where mails lie"
    assert list((folder / "mail").iterdir()) == [], "nobody has subscribed to anything"
    with urllib.request.urlopen(f"{address}/feedback") as answer:
        feedback = answer.read().decode()
    row = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", feedback.partition("<h2>To decide")[2].partition("</table>")[0]))
    contested = re.search(r"orion / \d+ · (\w+) .* (\w+) contests it", row)
    assert contested is not None
    assert contested[1] == contested[2], "the owner of the job contests its verdict"
    assert "No sample yet" not in feedback
    owner = next(printed).split()[-1]
    with urllib.request.urlopen(owner) as answer:
        page = answer.read().decode()
    assert "My failures" in page
    assert (
        "IndexError: Target 32001 is out of bounds" in page.partition("What you can do")[2].partition("</section>")[0]
    )
    assert "/nodes" not in page


@pytest.mark.parametrize(("width", "who"), [(390, "ana"), (1440, "bo")])
def test_a_new_user_subscribes_to_the_report_reads_it_and_ends_it(
    demo: tuple[str, Path, IO[str]], browser: Browser, width: int, who: str
) -> None:
    address, _, printed = demo
    with tab(browser, address, viewport={"width": width, "height": 900}) as page:
        page.goto("/")
        follow(page, "Reports")
        try_the_report(page, who, printed)


def test_a_taken_port_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(sys, "argv", ["demo", "--port", str(port), "--folder", str(tmp_path / "demo")])
        assert main() == 2
    printed = capfd.readouterr()
    assert len((printed.out + printed.err).splitlines()) == 1
    assert f"port {port} is taken" in printed.out
