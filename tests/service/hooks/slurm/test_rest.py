"""slurmrestd's bad answers as Slurm 24.11 gives them; the good ones are read on the lab's (test_scheduler.py)."""

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from service.clock import SystemClock
from service.hooks.request import SchedulerUnavailable
from service.hooks.slurm.record import SlurmJob
from service.hooks.slurm.rest import SlurmRest
from service.hooks.slurm.rest_call import SlurmRestTransport, token_of
from service.hooks.slurm.tools import SlurmRefused
from tests.service.http_server import listening

GOOD: dict[str, Any] = {"errors": [], "warnings": []}


def error(number: int, output: str) -> dict[str, Any]:
    return {"errors": [{"error_number": number, "error": output, "description": "tried"}], "warnings": []}


class Stub:
    """Answers as told, by path; notes what was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {"/slurm/v0.0.42/ping/": (200, GOOD)}
        self.asked: list[tuple[str, str, Any, str | None]] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                content = json.loads(self.rfile.read(length)) if length else None
                stub.asked.append((self.command, self.path, content, self.headers.get("x-slurm-user-token")))
                status, answer = stub.answers.get(self.path, (404, "Unable find requested URL."))
                body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815 - the server's own naming

            def log_message(self, *_args: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


class Commands:
    """Slurm's commands, which only note that they were called."""

    def __init__(self) -> None:
        self.called: list[tuple[Any, ...]] = []

    def job(self, job_id: str) -> SlurmJob | None:
        raise AssertionError(job_id)

    def find(self, word: str) -> list[str]:
        raise AssertionError(word)

    def failed_jobs(self) -> list[tuple[str, int]]:
        return []

    def nodes(self) -> dict[str, frozenset[str]]:
        raise AssertionError

    def memory_s(self) -> int:
        return 300

    def script(self, job_id: str) -> str:
        return f"script of {job_id}"

    def requeue_on_hold(self, job_id: str) -> None:
        self.called.append(("requeue", job_id))

    def update(self, job_id: str, changes: Mapping[str, str]) -> None:
        self.called.append(("update", job_id, dict(changes)))

    def release(self, job_id: str) -> None:
        self.called.append(("release", job_id))

    def submit(self, script: str, options: Sequence[str], *, folder: str = "", environment: bytes | None = None) -> str:
        self.called.append(("submit", script, tuple(options), folder, environment))
        return "77"


@pytest.fixture
def stub() -> Iterator[Stub]:
    made = Stub()
    with listening(made.server):
        yield made


@pytest.fixture
def commands() -> Commands:
    return Commands()


@pytest.fixture
def rest(stub: Stub, commands: Commands) -> SlurmRest:
    clock = SystemClock()
    return SlurmRest(
        SlurmRestTransport(stub.url, clock=clock, token=lambda: "secret-token", timeout_s=5), commands, clock
    )


def test_the_newest_version_that_both_know_is_spoken(stub: Stub, rest: SlurmRest) -> None:
    stub.answers["/slurm/v0.0.42/job/5"] = (200, {"jobs": [], **GOOD})
    assert rest.job("5") is None
    assert rest.job("5") is None
    pings = [path for _, path, _, _ in stub.asked if "ping" in path]
    assert pings == [f"/slurm/v0.0.{one}/ping/" for one in (45, 44, 43, 42)]
    assert {token for *_, token in stub.asked} == {"secret-token"}


def test_one_without_a_known_version_is_refused(stub: Stub, rest: SlurmRest) -> None:
    del stub.answers["/slurm/v0.0.42/ping/"]
    with pytest.raises(SlurmRefused, match=r"none of v0\.0\.45"):
        rest.nodes()


def test_a_job_that_slurm_does_not_know_is_none_and_not_an_error(stub: Stub, rest: SlurmRest) -> None:
    stub.answers["/slurm/v0.0.42/job/5"] = (200, {"jobs": [], **error(2017, "Invalid job id specified")})
    assert rest.job("5") is None
    stub.answers["/slurm/v0.0.42/job/5"] = (404, error(2017, "Invalid job id specified"))
    with pytest.raises(SlurmRefused, match="Invalid job id"):
        rest.release("5")


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (401, "Authentication failure", "token"),
        (500, error(-1, "Unspecified error"), "Unspecified"),
        (500, error(1000, "Unexpected message received"), "Unexpected"),
        (500, error(2049, "Slurm backup controller in standby mode"), "standby"),
        (200, error(5000, "Protocol authentication error"), "authentication"),
        (500, GOOD, "answered 500"),
        (502, "<html>bad gateway", "without JSON"),
        (200, "[1, 2]", "without JSON"),
    ],
)
def test_where_it_is_not_known_what_happened_slurm_counts_as_away(
    stub: Stub, rest: SlurmRest, status: int, answer: Any, words: str
) -> None:
    stub.answers["/slurm/v0.0.42/job/5"] = (status, answer)
    with pytest.raises(SchedulerUnavailable, match=words) as caught:
        rest.update("5", {"Comment": "c"})
    assert "secret" not in str(caught.value)


def test_a_refusal_by_slurm_is_final(stub: Stub, rest: SlurmRest) -> None:
    stub.answers["/slurm/v0.0.42/job/5"] = (500, error(2084, "Job has already finished"))
    with pytest.raises(SlurmRefused, match="already finished"):
        rest.update("5", {"Comment": "c"})


def test_an_action_that_the_user_of_the_token_may_not_do_is_executed_by_the_commands(
    stub: Stub, rest: SlurmRest, commands: Commands
) -> None:
    stub.answers["/slurm/v0.0.42/job/5"] = (500, error(2010, "Invalid user id"))  # as the lab's says it
    rest.update("5", {"Comment": "c"})
    rest.release("5")
    assert commands.called == [("update", "5", {"Comment": "c"}), ("release", "5")]


def test_a_change_that_was_applied_only_in_part_is_a_refusal(stub: Stub, rest: SlurmRest) -> None:
    warning = {"description": 'Ignoring unknown field "excluded_nodes" of type list'}
    stub.answers["/slurm/v0.0.42/job/5"] = (200, {"errors": [], "warnings": [warning]})
    with pytest.raises(SlurmRefused, match="excluded_nodes"):
        rest.update("5", {"ExcNodeList": "gpu1"})


def test_what_the_api_cannot_do_is_done_by_the_commands_and_reported_once(
    stub: Stub, rest: SlurmRest, commands: Commands, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            rest.requeue_on_hold("5")
            rest.update("5_1", {"Comment": "c"})
            rest.release("5_1")
            rest.update("5", {"ReqNodeList": ""})
        assert rest.submit("#!/bin/sh\n#SBATCH -n 2\n", ["--export=NONE"], folder="/tmp") == "77"
        assert rest.script("5") == "script of 5"
        assert rest.memory_s() == 300
    once = [
        ("requeue", "5"),
        ("update", "5_1", {"Comment": "c"}),
        ("release", "5_1"),
        ("update", "5", {"ReqNodeList": ""}),
    ]
    sent = ("submit", "#!/bin/sh\n#SBATCH -n 2\n", ("--export=NONE",), "/tmp", None)
    assert commands.called == [*once, *once, sent]
    assert [one[1] for one in stub.asked] == []
    output = [one.getMessage() for one in caplog.records]
    assert len(output) == len(set(output)) == 7
    assert any("requeued by scontrol" in one for one in output)
    assert any("#SBATCH" in one for one in output)


def test_a_submission_without_a_reported_number_may_have_happened(stub: Stub, rest: SlurmRest) -> None:
    stub.answers["/slurm/v0.0.42/job/submit"] = (200, GOOD)
    with pytest.raises(SchedulerUnavailable, match="job id"):
        rest.submit("#!/bin/sh\n", ["--export=NONE"])


def test_a_waiting_task_of_an_array_is_found_by_its_comment(stub: Stub, rest: SlurmRest) -> None:
    def record(number: int, comment: str, **more: Any) -> dict[str, Any]:
        return {"job_id": number, "job_state": ["PENDING"], "comment": comment, **more}

    array = {"array_job_id": {"set": True, "number": 9}, "array_task_id": {"set": False}, "array_task_string": "4"}
    jobs = [
        record(7, "x faultline/request=r1"),
        record(8, "faultline/request=r1 x"),
        record(9, "f faultline/request=r1", **array),
    ]
    stub.answers["/slurm/v0.0.42/jobs/"] = (
        200,
        {"jobs": [*jobs, "nonsense", {"comment": "faultline/request=r1"}], **GOOD},
    )
    assert rest.find("faultline/request=r1") == ["7", "9_4"]


@pytest.mark.parametrize("job", ["12+1", "all", "1/../../nodes", "-1", "5\n"])
def test_what_is_no_number_is_never_part_of_an_address(stub: Stub, rest: SlurmRest, job: str) -> None:
    with pytest.raises(SlurmRefused, match="not a job id"):
        rest.job(job)
    with pytest.raises(SlurmRefused, match="not a job id"):
        rest.release(job)
    assert stub.asked == []


def test_a_hook_waits_while_slurmrestd_is_unavailable(tmp_path: Path, commands: Commands) -> None:
    clock = SystemClock()
    for url in (f"unix:{tmp_path}/none.sock", "http://127.0.0.1:9"):
        with pytest.raises(SchedulerUnavailable, match="slurmrestd at"):
            SlurmRest(SlurmRestTransport(url, clock=clock, timeout_s=2), commands, clock).job("5")


def test_the_token_is_read_again_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    read = token_of(f"file:{file}")
    with pytest.raises(SchedulerUnavailable, match="can't be read"):
        read()
    file.write_text("SLURM_JWT=one\n")
    assert read() == "one"
    file.write_text("two")
    assert read() == "two"
    file.write_text("")
    with pytest.raises(SchedulerUnavailable, match="no token"):
        read()
    monkeypatch.setenv("LAB_JWT", "three")
    assert token_of("env:LAB_JWT")() == "three"


def test_a_token_file_without_an_end_is_not_read_to_the_end(tmp_path: Path) -> None:
    """It was read until the memory was full; a pipe without a writer held up the hook for ever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    large = tmp_path / "large"
    with large.open("wb") as made:
        made.truncate(64 << 30)
    for file in (pipe, large, Path("/dev/zero")):
        with pytest.raises(SchedulerUnavailable):
            token_of(f"file:{file}")()
