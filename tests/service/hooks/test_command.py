import json
import os
import sys
import time
from pathlib import Path

import pytest

from service.hooks.command import CommandScheduler
from service.hooks.request import Failed, LeaseExpired, Ready, Settled
from tests.service.hooks.sample_requests import Lasting, request


def program(folder: Path, text: str) -> list[str]:
    path = folder / "program.py"
    path.write_text(f"import json, os, signal, subprocess, sys, time\n{text}\n")
    return [sys.executable, str(path)]


def outcome(folder: Path, text: str, timeout_s: float = 20.0) -> Settled | Failed:
    scheduler = CommandScheduler(program(folder, text), timeout_s=timeout_s)
    assert isinstance(scheduler.inspect(request(), begun_at=None), Ready)
    return scheduler.execute(request(), Lasting())


def test_the_program_reads_the_request_and_its_exit_code_is_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULTLINE_HOOK_TOKEN_FILE", "/secret")
    kept = tmp_path / "kept.json"
    text = f"open({str(kept)!r}, 'w').write(json.dumps([json.load(sys.stdin), dict(os.environ)]))"
    assert outcome(tmp_path, text) == Settled("done", "exit code 0; no output")
    given, environment = json.loads(kept.read_text())
    assert (given["request_id"], given["job_id"], given["exclude_nodes"]) == ("r1", "7", ["gpu1"])
    assert "lease_token" not in given
    assert environment["FAULTLINE_REQUEST_ID"] == "r1"
    assert "/secret" not in environment.values()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('print("hello"); print(json.dumps({"new_job_id": 77}))', ("done", "77")),
        ('print(json.dumps({"result": "already_done", "detail": "by hand"}))', ("already_done", None)),
        ('print("[1, 2]")', ("done", None)),
        ('print(json.dumps({"new_job_id": "two\\nlines"}))', ("done", None)),  # the service takes neither
        ('print(json.dumps({"new_job_id": "7" * 201}))', ("done", None)),
        ("os.kill(os.getpid(), signal.SIGKILL)", ("unknown", None)),
    ],
)
def test_the_answers_that_a_program_may_give(tmp_path: Path, text: str, expected: tuple[str, str | None]) -> None:
    settled = outcome(tmp_path, text)
    assert isinstance(settled, Settled)
    assert (settled.result, settled.new_job_id) == expected


def test_exit_code_75_means_later_and_others_fail_with_the_last_lines_of_output(tmp_path: Path) -> None:
    assert outcome(tmp_path, "sys.exit(75)") == Failed("exit code 75, try later; no output", 60.0)
    failed = outcome(tmp_path, "print('no such job', file=sys.stderr); sys.exit(3)")
    assert failed == Failed("exit code 3; output: no such job")
    assert isinstance(CommandScheduler(["/nonexistent"], timeout_s=1).execute(request(), Lasting()), Failed)


@pytest.mark.slow
def test_a_program_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    kept = tmp_path / "pids"
    shell = f"trap '' TERM; sleep 600 & echo $$ $! > {kept}; wait"  # a shell starts at once on any machine
    settled = CommandScheduler(["/bin/sh", "-c", shell], timeout_s=1.5).execute(request(), Lasting())
    assert isinstance(settled, Settled)
    assert settled.result == "unknown"  # nobody knows how far it got
    deadline = time.monotonic() + 60
    for pid in map(int, kept.read_text().split()):
        while alive(pid):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"


def test_after_the_lease_it_is_not_started(tmp_path: Path) -> None:
    scheduler = CommandScheduler(program(tmp_path, f"open({str(tmp_path / 'x')!r}, 'w')"), timeout_s=5)
    with pytest.raises(LeaseExpired):
        scheduler.execute(request(), Lasting(steps=0))
    assert not (tmp_path / "x").exists()
