"""Tests `faultline serve` and `faultline token` as an operator runs them: real processes, a file, a port."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from service.settings import default_model_dir
from tests.labs.need import missing
from tests.service.databases import copy_migrated
from tests.service.run_command import Finished, run_command

FAULTLINE = (sys.executable, "-m", "service")
EVENT = {
    "cluster": "orion",
    "job_id": "7",
    "status": "failed",
    "exit_code": 1,
    "ended_at": "2026-11-20T03:41:57Z",
    "logs": [{"rank": 0, "stream": "stderr", "tail": "ModuleNotFoundError: No module named 'flash_attn'\n"}],
}


@dataclass
class Place:
    """A folder with a database whose schema is current."""

    environ: Mapping[str, str]
    folder: Path

    def run(self, *arguments: str) -> Finished:
        return run_command(self.environ, *arguments)

    @contextmanager
    def serving(self, *arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
        command = [*FAULTLINE, "serve", "--port", "0", *arguments]
        with subprocess.Popen(command, env=self.environ, cwd=self.folder, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr is not None
                output = []
                for line in process.stderr:
                    output.append(line)
                    found = re.search(r"Faultline is at http://\S+:(\d+)$", line)
                    if found is not None:
                        yield f"http://127.0.0.1:{found[1]}", process
                        return
                pytest.fail("serve ended: " + "".join(output))
            finally:
                if process.poll() is None:
                    process.terminate()
                process.communicate(timeout=120)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    if not (default_model_dir() / "manifest.json").exists():
        missing("no model is trained (make install)")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
    environ |= {
        "FAULTLINE_DATABASE_URL": copy_migrated(tmp_path / "faultline.sqlite3"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    return Place(environ, tmp_path)


def ask(address: str, path: str, *, body: object = None, token: str | None = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    data = None if body is None else json.dumps(body).encode()
    headers |= {"Content-Type": "application/json"} if data else {}
    request = urllib.request.Request(address + path, data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_an_event_that_is_posted_is_diagnosed_by_the_trained_model_and_survives_a_restart(place: Place) -> None:
    with place.serving() as (address, process):
        assert ask(address, "/health/ready")[0] == 200
        status, result = ask(address, "/api/v1/events?wait=verdict", body=EVENT)
        assert (status, result["accepted"]) == (200, 1)
        assert result["verdicts"][0]["side"] == "user"
        assert result["verdicts"][0]["category"] == "EE.2"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 0
    with place.serving() as (address, _):
        assert ask(address, "/api/v1/events", body=EVENT)[1]["duplicates"] == 1
        assert len(ask(address, "/api/v1/failures")[1]["items"]) == 1


def test_a_taken_port_is_one_clear_line(place: Place) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = place.run("serve", "--port", str(port))
    assert done.returncode == 2
    assert done.stderr.strip().splitlines() == [
        f"faultline: port {port} on 127.0.0.1 is in use: stop the program that uses it, or choose another port (--port)"
    ]


@pytest.mark.parametrize(
    ("arguments", "word"), [(["--port", "99999"], "65535"), (["--host", "no.such.host.invalid"], "HOST")]
)
def test_an_address_that_is_none_is_one_clear_line(place: Place, arguments: list[str], word: str) -> None:
    done = place.run("serve", *arguments)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert word in done.stderr


def test_beyond_loopback_it_starts_only_with_a_token_and_then_asks_for_it(place: Place) -> None:
    refused = place.run("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2
    assert "faultline token create" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1

    made = place.run("token", "create", "ana", "--scope", "ingest,read")
    secret = made.stdout.strip()
    assert (made.returncode, secret[:4]) == (0, "flt_")
    with place.serving("--host", "0.0.0.0") as (address, _):
        assert ask(address, "/api/v1/stats")[0] == 401
        assert ask(address, "/api/v1/stats", token=secret)[0] == 200
        assert ask(address, "/api/v1/dead-letters/1:resend", body={}, token=secret)[0] == 403
        listed = place.run("token", "list").stdout
        assert listed.startswith("ana\tingest,read\t")
        assert secret not in listed
        assert place.run("token", "revoke", "ana").returncode == 0
        assert ask(address, "/api/v1/stats", token=secret)[0] == 401
    for path in place.folder.iterdir():
        assert secret.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (
            ["create", "ana", "--scope", "ingest,fly"],
            "scopes: expected one or more of ingest, publish, labels, hook, read, act, admin",
        ),
        (["revoke", "nobody"], 'no token named "nobody"'),
    ],
)
def test_a_token_command_that_can_not_be_done_says_why(place: Place, arguments: list[str], word: str) -> None:
    done = place.run("token", *arguments)
    assert done.returncode != 0
    assert len(done.stderr.strip().splitlines()) == 1
    assert word in done.stderr
