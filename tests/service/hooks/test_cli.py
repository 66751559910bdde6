"""`faultline hook` against the real API over a real store: one round in this process, a service as its own."""

import io
import json
import logging
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from service.__main__ import main
from service.deliveries.channels import signing
from tests.labs.ports import free_port
from tests.service.deliveries.sample_messages import KEY, SECRET
from tests.service.web.live import serving
from tests.service.web.world import World, event, log, make_world

XID = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."


@dataclass(frozen=True)
class Done:
    """What a command returned and printed."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str, **environment: str) -> Done:
    """Run `faultline` in this process, without this machine's settings; log lines count as printed errors."""
    signals = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}
    output, errors, log = io.StringIO(), io.StringIO(), logging.getLogger()
    level, handler = log.level, logging.StreamHandler(errors)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    with redirect_stdout(output), redirect_stderr(errors), pytest.MonkeyPatch.context() as patch:
        for name in set(os.environ) - set(bare()):
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            code = main(list(arguments))
        except SystemExit as ended:  # argparse ends the process itself
            code = int(ended.code or 0)
        finally:
            log.removeHandler(handler)
            log.setLevel(level)
            for one, former in signals.items():
                signal.signal(one, former)
    return Done(code, output.getvalue(), errors.getvalue())


@dataclass
class Place:
    """A service with one request waiting, and what a hook needs to get at it."""

    world: World
    url: str
    folder: Path
    token: str

    def command(self, *more: str) -> list[str]:
        words = ["--url", self.url, "--cluster", "orion", "--state-dir", str(self.folder / "state")]
        words += ["--token-file", str(self.folder / "token"), *more]
        program = f"cat >>{self.folder}/given; echo hello"
        return [sys.executable, "-m", "service", "hook", "command", *words, "--", "/bin/sh", "-c", program]

    def once(self, *more: str, **environment: str) -> Done:
        return run(*self.command("--once", *more)[3:], **environment)

    def given(self) -> list[dict[str, object]]:
        path = self.folder / "given"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def ask(self, job: str) -> None:
        """A job fails, and a person wants it again."""
        client = self.world.client(self.token)
        assert client.post("/api/v1/events", json=event(job, logs=[log(XID)])).json()["accepted"] == 1
        failure = client.get("/api/v1/failures").json()["items"][0]["id"]
        assert client.post(f"/api/v1/failures/{failure}:resubmit").status_code == 200

    def states(self) -> list[str]:
        items = self.world.client(self.token).get("/api/v1/resubmissions").json()["items"]
        return [one["state"] for one in items if one["origin"] == "person"]


def bare() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    world = make_world(tmp_path)
    world.clock.at = datetime.now(UTC)  # the hook's clock is the machine's
    token = world.token("ingest", "read", "act")
    (tmp_path / "token").write_text(token + "\n")
    with serving(world.app) as url:
        made = Place(world, url, tmp_path, token)
        made.ask("7")
        yield made
    world.store.close()


def test_one_round_executes_waiting_requests_and_reports_them(place: Place) -> None:
    done = place.once()
    assert done.returncode == 0, done.stderr
    [given] = place.given()
    assert (given["job_id"], given["exclude_nodes"]) == ("7", ["gpu018"])
    assert place.states() == ["done"]
    assert place.token not in done.stderr + done.stdout
    assert place.once().returncode == 0
    assert len(place.given()) == 1


def test_a_slurm_hook_uses_slurmrestd_if_configured(place: Place) -> None:
    words = ["--url", place.url, "--cluster", "orion", "--state-dir", str(place.folder / "state"), "--once"]
    words += ["--token-file", str(place.folder / "token"), "--slurmrestd", f"unix:{place.folder}/none.sock"]
    words += ["--slurm-bin", str(place.folder), "--slurmrestd-token", "env:LAB_JWT"]
    done = run("hook", "slurm", *words, LAB_JWT="eyJ-the-token")
    assert f"slurmrestd at unix:{place.folder}/none.sock" in done.stderr, done.stderr
    assert "eyJ" not in done.stderr
    assert place.states() == ["waiting"]  # given back, to be tried again


def test_a_dry_run_executes_and_reports_nothing(place: Place) -> None:
    done = place.once("--dry-run")
    assert "dry run" in done.stderr
    assert "run /bin/sh" in done.stderr
    assert (place.given(), place.states()) == ([], ["waiting"])


@pytest.mark.parametrize("misspelt", ["FAULTLINE_DRY_RUN", "FAULTLINE_HOK_DRY_RUN", "faultline_hookdry_run"])
def test_a_misspelt_variable_never_lets_a_dry_run_act(place: Place, misspelt: str) -> None:
    done = place.once(**{misspelt: "true"})
    assert (done.returncode, place.given(), place.states()) == (2, [], ["waiting"])
    [line] = done.stderr.splitlines()
    assert misspelt in line


def test_settings_of_the_service_in_the_same_environment_change_nothing(place: Place) -> None:
    done = place.once(FAULTLINE_DATABASE_URL_FILE="/run/secrets/none", FAULTLINE_PORT="x")
    assert (done.returncode, place.states()) == (0, ["done"])


def test_a_hook_gets_no_request_while_automation_is_stopped(place: Place) -> None:
    assert place.world.client(place.world.token("admin")).post("/api/v1/automation:stop").status_code == 200
    assert place.once().returncode == 0
    assert (place.given(), place.states()) == ([], ["waiting"])


@pytest.mark.parametrize(
    ("token", "printed", "code"),
    [("flt_ambiguous", "401", 1), ("", "expected one API token", 2), (None, "No such file", 2)],
)
def test_a_wrong_token_is_reported_and_not_shown(place: Place, token: str | None, printed: str, code: int) -> None:
    if token is None:
        (place.folder / "token").unlink()
    else:
        (place.folder / "token").write_text(token)
    done = place.once()
    assert done.returncode == code
    assert printed in done.stderr
    assert "flt_ambiguous" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_option_ends_with_one_line(place: Place) -> None:
    done = place.once("--poll-s", "often")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_a_signed_webhook_wakes_it_and_sigterm_ends_it(place: Place) -> None:
    port = free_port()
    (place.folder / "secret").write_text(SECRET)
    listen = ("--listen", f"127.0.0.1:{port}", "--webhook-secret-file", str(place.folder / "secret"))
    with (place.folder / "hook.log").open("wb") as output:
        hook = subprocess.Popen(place.command("--poll-s", "600", *listen), stderr=output, env=bare())
    try:
        wait_for(lambda: place.states() == ["done"])
        second = place.once()
        assert (second.returncode, "folder of its own" in second.stderr) == (2, True)
        place.ask("8")
        body = b'{"type":"resubmission.requested","data":{}}'
        headers = signing.headers([KEY], "msg_1", datetime.now(UTC), body)
        knock = urllib.request.Request(f"http://127.0.0.1:{port}/", body, headers)
        with urllib.request.urlopen(knock, timeout=120) as answer:
            assert answer.status == 204
        wait_for(lambda: place.states() == ["done", "done"])
        hook.send_signal(signal.SIGTERM)
        assert hook.wait(60) == 0
    finally:
        hook.kill()
        hook.wait(20)
    assert place.token not in (place.folder / "hook.log").read_text()


def wait_for(happened: object) -> None:
    assert callable(happened)
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)
