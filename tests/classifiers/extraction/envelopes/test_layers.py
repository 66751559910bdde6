"""Envelopes in envelopes, and times that a collector puts before lines with times and ranks of their own."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import Evidence, JobFacts, LogStream, RawCase
from classifiers.extraction.envelopes.unwrapping import unwrapped
from tests.classifiers.packaged_catalogue import EXTRACTOR

START = datetime(2026, 11, 24, 10, 0, tzinfo=UTC)
ERROR = "KeyError: 'hard_negatives'"
TRACE = ("Traceback (most recent call last):", '  File "/workspace/train.py", line 41, in <module>', ERROR)
# Each log with its own form of lines, and the rank that failed.
LOGS: dict[str, tuple[tuple[str, ...], int | None]] = {
    "no times": ((*(f"step {number} loss 2.{number}" for number in range(6)), "", *TRACE), None),
    "own times": ((*(f"2026-11-24 09:59:0{n},120 INFO step {n} loss 2.{n}" for n in range(6)), *TRACE), None),
    "mpiexec -l": ((*(f"[{n % 2}] step {n // 2} loss 2.{n}" for n in range(8)), *(f"[1] {one}" for one in TRACE)), 1),
    "srun --label": ((*(f"{n % 2}: step {n // 2} loss 2.{n}" for n in range(8)), *(f"1: {one}" for one in TRACE)), 1),
    "mpirun --tag-output": (
        (
            *(f"[1,{n % 2}]<stdout>:step {n // 2} loss 2.{n}" for n in range(8)),
            *(f"[1,1]<stderr>:{one}" for one in TRACE),
        ),
        1,
    ),
}
Envelope = Callable[[str, datetime, int], str]


def _record(line: str, at: datetime) -> str:
    return json.dumps({"log": f"{line}\n", "stream": "stderr", "time": f"{at:%FT%T.%f}Z"})


ENVELOPES: dict[str, Envelope] = {
    "container runtime": lambda line, at, _: f"{at:%FT%T.%f}123Z stdout F {line}",
    "container runtime, both streams": (
        lambda line, at, number: f"{at:%FT%T.%f}123Z {('stdout', 'stderr')[number % 2]} F {line}"
    ),
    "records behind the runtime's time": lambda line, at, _: f"{at:%FT%T.%f}123Z stderr F {_record(line, at)}",
    "records behind a time": lambda line, at, _: f"{at:%FT%T.%f}123Z {json.dumps({'log': line})}",
    "a workflow engine's lines from a runtime": (
        lambda line, at, _: f"{at:%FT%T.%f}1Z stdout F [{at:%FT%T}.000+0000] {{pod_manager.py:4}} INFO - [base] {line}"
    ),
    "glog of a runner": lambda line, at, _: f"I{at:%m%d %T.%f} 41 stream.py:12] {line}",
    "a time": lambda line, at, _: f"{at:%FT%T.%f}123Z {line}",
}


def first(lines: tuple[str, ...]) -> Evidence:
    log = LogStream("\n".join(lines), first_line=1)
    return EXTRACTOR.extract(RawCase(JobFacts(status="failed", exit_code=1, gpus=2), streams=(log,))).case.evidence[0]


def in_envelope(name: str, lines: tuple[str, ...]) -> tuple[str, ...]:
    envelope = ENVELOPES[name]
    return tuple(envelope(line, START + timedelta(seconds=number), number) for number, line in enumerate(lines))


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("name", ENVELOPES)
def test_the_first_line_its_rank_and_number_are_those_of_the_program(name: str, log: str) -> None:
    lines, rank = LOGS[log]
    wrapped, plain = first(in_envelope(name, lines)), first(lines)
    assert ERROR in plain.text
    assert ERROR in wrapped.text
    assert (wrapped.role, wrapped.line, wrapped.rank) == (plain.role, plain.line, plain.rank)
    assert wrapped.rank == rank


def test_times_before_the_programs_own_are_taken_off() -> None:
    lines, _ = LOGS["own times"]
    assert unwrapped(LogStream("\n".join(in_envelope("a time", lines)))).text == "\n".join(lines)


@pytest.mark.parametrize("log", ["no times", "own times"])
def test_times_of_the_program_alone_stay(log: str) -> None:
    lines, _ = LOGS[log]
    text = "\n".join(in_envelope("a time", lines) if log == "no times" else lines)
    assert unwrapped(LogStream(text)).text == text
