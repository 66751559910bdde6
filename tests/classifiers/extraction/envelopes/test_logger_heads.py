"""Heads of a runner's logger are taken off; those of the program's own logger stay."""

import pytest

from classifiers.contracts import LogStream
from classifiers.extraction.envelopes import logger_heads
from classifiers.extraction.envelopes.unwrapping import own_text, unwrapped

SHELL = "run.sh: line 1: nvidia-smi: command not found"
PROGRAM = (
    "starting 8 workers",
    "Traceback (most recent call last):",
    '  File "/workspace/train.py", line 41, in <module>',
    "KeyError: 'rate'",
)
HEADS = (
    "INFO: ", "[INFO] ", "ERROR: ", "[ERROR] ", "ERROR:launcher:", "1780000000 INFO ",
    "2026-05-24 12:00:00,123 - launcher - ERROR - ", "2026-05-24 12:00:00.123 | INFO     | runner:pump:88 - ",
    "[05/24/26 12:00:00] INFO     ", "E0524 12:00:00.123456 1234 relay.cc:12] ",
    "I0524 12:00:00.123456       1 runner.go:88] ",
)  # fmt: skip


def lines_of(*lines: str) -> list[str]:
    return [own_text(line) for line in unwrapped(LogStream("\n".join(lines))).text.split("\n")]


@pytest.mark.parametrize("head", HEADS)
def test_a_runner_logs_the_lines_of_its_child(head: str) -> None:
    assert lines_of(*(head + line for line in PROGRAM)) == list(PROGRAM)


@pytest.mark.parametrize("head", [head for head in HEADS if "INFO" in head])
def test_one_line_shows_by_itself_that_no_program_logged_it(head: str) -> None:
    assert lines_of(head + SHELL) == [SHELL]


@pytest.mark.parametrize("head", [head for head in HEADS if "INFO" in head])
@pytest.mark.parametrize(
    "line",
    [
        SHELL, *PROGRAM[1:], "E0524 12:00:00.000001 7 a.cc:1] x", "[2026-05-24 12:00:00] x", "[rank3]: x", '{"a": 1}',
        "[1,0]<stderr>: x", "srun: error: x", "./a.sh: 17: x", '\x0bFile "a.py", line 3', "ERROR: x", "make: *** x",
        "Segmentation fault", "a.b.CustomException: x", "terminate called after x", "panic: x",
    ],
)  # fmt: skip
def test_one_line_among_many_shows_that_no_program_logged_them(head: str, line: str) -> None:
    lines = [*(f"step {number} of 900 done" for number in range(30)), line, "ended"]
    assert logger_heads.of_runner("\n".join(head + one for one in lines)) is not None
    assert logger_heads.of_runner("\n".join(head + one for one in lines if one != line)) is None


@pytest.mark.parametrize(
    "lines",
    [
        ("INFO: step 1 loss 2.3", "INFO: retrying after a time-out", "INFO: step 2 loss 2.2", "INFO: step 3 loss 2.1"),
        ("ERROR: disk quota exceeded",),
        ("INFO: starting", "ERROR: disk quota exceeded", "INFO: ending", "INFO: ended"),
        (
            "WARNING: slow",
            "INFO: starting",
            "Traceback (most recent call last):",
            '  File "a.py", line 1',
            "KeyError: 'a'",
        ),
    ],
)
def test_levels_of_the_program_stay(lines: tuple[str, ...]) -> None:
    assert unwrapped(LogStream("\n".join(lines))).text == "\n".join(lines)


def test_an_envelope_behind_the_rank_of_a_launcher_is_taken_off() -> None:
    own = [f"[rank{rank}]: INFO: {line}" for line in PROGRAM for rank in range(2)]
    stream = unwrapped(LogStream("\n".join(own)))
    assert stream.text.split("\n") == [f"[rank{rank}]: {line}" for line in PROGRAM for rank in range(2)]
