"""The page of signatures: own ones first, what each one matched, and the state of their folder."""

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from service.failures.repository import signature_hits
from service.signatures.signature_folder import POLL_S, SignatureFolder
from service.web.app import create_app
from service.web.pages.failure import page as failure_page
from tests.service.signatures.entries import LICENCE, QUOTA, write
from tests.service.web.test_automation_pages import words
from tests.service.web.world import NOW, World, event, lines, log

ERROR = "ModuleNotFoundError: No module named 'flash_attn'"
OWN = f"""
[[signature]]
id = "python.site-module"
label = "Module of the site <b>missing</b>"
cause = "USER.4"
role = "initiating"
action = "Load the module with `module load ml`."
literals = ["no module named 'flash_attn'"]
examples = ["{ERROR}"]
near_misses = ["ModuleNotFoundError: No module named 'torch'"]
"""


def page(world: World, folder: SignatureFolder) -> TestClient:
    app = create_app(replace(world.services, signatures=folder))
    return TestClient(app, base_url="http://127.0.0.1:8080")


def test_without_a_folder_the_setting_is_named(client: TestClient) -> None:
    assert "None: FAULTLINE_SIGNATURES_DIR is not set." in words(client.get("/signatures").text)


def test_failures_are_counted_by_the_signatures_of_their_evidence(client: TestClient, world: World) -> None:
    client.post("/api/v1/events", content=lines(*(event(str(n)) for n in range(3))))
    with world.store.reading() as reading:
        found = reading.signature_hits.count(world.services.clock.now().replace(year=2000))
        assert (found.failures, found.complete) == (3, True)
        assert reading.signature_hits.count(world.services.clock.now().replace(year=2000), most=2).complete is False
        (name, hits), *_ = found.hits.items()
    assert (hits.failures, hits.last_failure_id) == (3, 3)
    assert name in words(client.get("/signatures").text)


def test_the_number_of_failures_opens_the_newest_of_them(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signature_hits, "LISTED", 2)
    ended = [(NOW - timedelta(hours=hours)).isoformat() for hours in (2, 3, 1)]
    failed = [event(f"job-{n}", ended_at=at) for n, at in enumerate(ended)]
    other = event("other", logs=[log("OSError: Stale file handle")])
    client.post("/api/v1/events", content=lines(*failed, other))
    [address] = set(re.findall(r'href="(/signatures\?signature=Module[^"]*)"', client.get("/signatures").text))
    shown = words(client.get(address).text).partition("Own signatures")[0]
    assert "Failures with ModuleNotFoundError" in shown
    assert re.findall(r"orion / (job-\d|other)", shown) == ["job-2", "job-0"]
    assert "The newest 2 of 3." in shown
    none = words(client.get("/signatures?signature=%3Cb%3Enone").text)
    assert "None in the last 28 days." in none


def test_own_signatures_are_listed_and_a_broken_version_is_reported(world: World, tmp_path: Path) -> None:
    folder = SignatureFolder(write(tmp_path / "own", OWN, QUOTA), world.clock)
    with page(world, folder) as client:
        html = client.get("/signatures").text
        shown = words(html)
        assert "python.site-module" in shown
        assert "<b>missing" not in html
        assert "Delete old checkpoints in /scratch" in shown
        write(tmp_path / "own", LICENCE.replace('role = "initiating"', 'role = "first"'))
        world.clock.sleep(POLL_S)
        shown = words(client.get("/signatures").text)
        assert "The newest files are not in use: site.toml: entry 1 (site.licence-server): role: expected" in shown
        assert "Delete old checkpoints in /scratch" in shown


def test_the_page_of_a_failure_shows_the_action_of_the_own_signature(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = SignatureFolder(write(tmp_path / "own", OWN, QUOTA), world.clock)
    services = replace(world.services, signatures=folder)
    matched = {"evidence": [{"signature": "python.site-module"}, {"signature": None}, {"signature": "cuda.oom"}]}
    [entry] = failure_page.site_actions(services, matched)
    assert entry.action == "Load the module with `module load ml`."
    monkeypatch.setattr(failure_page, "site_actions", lambda *_: (entry,))  # the world's classifier knows no catalogue
    with page(world, folder) as client:
        client.post("/api/v1/events", content=lines(event("1")))
        html = client.get("/failures/1").text
    assert "Load the module with `module load ml`." in words(html)
    assert "<b>missing" not in html


def test_the_label_of_an_own_signature_is_the_headline(world: World, tmp_path: Path) -> None:
    folder = SignatureFolder(write(tmp_path / "own", OWN), world.clock)
    with page(world, folder) as client:
        client.post("/api/v1/events", content=lines(event("1", logs=[log(ERROR)])))
        for address in ("/failures", "/failures/1", "/groups", "/groups/1"):
            shown = unescape(words(client.get(address).text))
            assert f"Module of the site <b>missing</b>: {ERROR}" in shown, address
