"""Events that torchelastic prints as JSON, read as what the workers and the agent said."""

import json
from typing import Any

import pytest

from classifiers.contracts import LogStream
from classifiers.extraction.envelopes.elastic_events import as_lines
from classifiers.extraction.envelopes.unwrapping import unwrapped
from classifiers.extraction.process_exits import find_exits

STACK = 'Traceback (most recent call last):\n  File "/app/train.py", line 41, in step\nKeyError: 7\n'
ERROR = json.dumps({"message": {"message": "KeyError: 7", "extraInfo": {"py_callstack": STACK}, "errorCode": 1}})
NONE = '{"message": "<NONE>"}'


def event(state: str, rank: int | None = 9, code: int = 1, raw: str | None = ERROR, **metadata: Any) -> str:
    """An event as `torch.distributed.elastic.events` writes it."""
    worker = {"group_world_size": 2, "local_rank": [1], "exit_code": [code], "worker_pid": [4712]}
    named = {"run_id": "884120", "global_rank": rank, "hostname": "gpu018", "state": state, "raw_error": raw}
    return json.dumps(
        {
            "name": f"torchelastic.worker.status.{state}",
            "source": "AGENT" if rank is None else "WORKER",
            "timestamp": 0,
            "metadata": {**named, "metadata": json.dumps(worker), **metadata},
        }
    )


def test_the_exception_of_a_worker_stands_behind_its_rank_with_its_exit() -> None:
    assert (as_lines(event("FAILED")) or "").splitlines() == [
        "[rank9]: Traceback (most recent call last):",
        '[rank9]:   File "/app/train.py", line 41, in step',
        "[rank9]: KeyError: 7",
        "[rank9]: failed (exitcode: 1) local_rank: 1 (pid: 4712)",
    ]


def test_a_worker_without_an_error_file_has_its_exit() -> None:
    line = as_lines(event("FAILED", code=-11, raw=NONE))
    assert line == "[rank9]: failed (exitcode: -11) local_rank: 1 (pid: 4712)"
    [found] = find_exits(line)
    assert (found.local_rank, found.exit_code, found.signal) == (1, -11, 11)


def test_a_worker_that_the_agent_ended_is_no_failure() -> None:
    assert as_lines(event("TERMINATED", code=-15)) == "Sending process 4712 closing signal SIGTERM"


@pytest.mark.parametrize("state", ["SUCCEEDED", "START", "RENDEZVOUS"])
def test_other_events_say_nothing_of_a_failure(state: str) -> None:
    assert as_lines(event(state, rank=None)) == ""


@pytest.mark.parametrize(
    "line",
    [
        "step 10 loss 2.1",
        '{"name": "torchelastic.worker.status.FAILED", "metadata": {',
        'print(\'{"name": "torchelastic.worker.status.FAILED"}\')',
    ],
)
def test_other_lines_stay(line: str) -> None:
    assert as_lines(line) is None


@pytest.mark.parametrize(
    "metadata",
    [
        {"metadata": None},
        {"metadata": "[1]"},
        {"metadata": '{"local_rank": [true], "exit_code": "x"}', "raw_error": 7},
        {"metadata": '{"local_rank": [1, 2], "exit_code": [10000000000]}', "global_rank": -1, "raw_error": "{"},
    ],
)
def test_wrong_fields_are_left_out(metadata: dict[str, Any]) -> None:
    assert as_lines(event("FAILED", **{"raw": NONE, **metadata})) == ""


def test_lines_keep_their_numbers() -> None:
    text = f"step 10 loss 2.1\n2026-11-20 03:41:57 {event('FAILED')}\nbye"
    found = unwrapped(LogStream(text))
    assert found.text.splitlines()[1] == "2026-11-20 03:41:57 [rank9]: Traceback (most recent call last):"
    assert found.text.splitlines()[-1] == "bye"
    assert (found.text.index("bye"), 3) in found.windows
