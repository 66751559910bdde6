"""The program of `make demo`: it fills an empty folder and serves it; a port in use is reported in one line."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from service.demo.__main__ import main
from tests.labs.ports import free_port


@pytest.mark.timeout(600)  # it simulates a month, which takes minutes on a busy machine
def test_the_demo_fills_an_empty_database_and_says_what_to_open(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "service.demo", "--port", str(port), "--folder", str(tmp_path / "demo")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        try:
            assert demo.stdout is not None
            result = next(line for line in demo.stdout if line.startswith("Open "))
            assert f"http://127.0.0.1:{port}/" in result
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/stats?since=28d") as answer:
                stats = json.load(answer)["stats"]
            assert stats["failed"] > 400
            assert {share["key"] for share in stats["by_side"]} >= {"hardware", "system", "user"}
        finally:
            demo.send_signal(signal.SIGINT)
        assert demo.wait(timeout=30) == 0


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
