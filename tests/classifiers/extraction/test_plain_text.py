"""Terminal colours, byte order marks and foreign line ends change neither what a log says nor its line numbers."""

import json

import pytest

from classifiers.case_builder import build_case
from classifiers.contracts import Evidence, JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

HOROVOD_END = (
    "RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus causing the job to be"
    " terminated. The first process to do so was:\n"
    "Process name: [1,7]<stderr>\n"
    "Exit code:    3\n"
)


def evidence(log: LogStream) -> list[Evidence]:
    return list(EXTRACTOR.extract(RawCase(job=JobFacts(status="failed"), streams=(log,))).case.evidence)


def test_colours_shift_no_line_numbers_of_the_parts_of_a_file() -> None:
    front = "".join(f"\x1b[32mINFO\x1b[0m \x1b[36mstep {number}\x1b[0m\n" for number in range(200))
    text = front + "\x1b[31mTraceback (most recent call last):\x1b[0m\nKeyError: 'y'\n"
    log = LogStream(text, rank=0, windows=((0, 1), (len(front), 90_000)))
    [error] = [one for one in evidence(log) if one.text == "KeyError: 'y'"]
    assert error.line == 90_001


def test_envelopes_are_taken_off_lines_with_colours() -> None:
    texts = ["step 1 loss 2.5", "step 2 loss 2.4", "Traceback (most recent call last):", "KeyError: 'hard_negatives'"]
    lines = [json.dumps({"time": f"2026-07-01T14:07:{at}.1Z", "stream": "stderr", "log": t}) for at, t in
             enumerate(texts, 10)]  # fmt: skip
    plain, coloured = ("\n".join(some) for some in (lines, [f"\x1b[31m{line}\x1b[0m" for line in lines]))
    assert evidence(LogStream(coloured, rank=0)) == evidence(LogStream(plain, rank=0))


@pytest.mark.parametrize("end", ["\r\n", "\r\r\n"])
def test_line_ends_of_windows_and_terminals_change_nothing(end: str) -> None:
    text = "epoch 1 loss 2.5\n" + HOROVOD_END
    assert evidence(LogStream(text.replace("\n", end))) == evidence(LogStream(text))


def test_carriage_returns_before_lines_change_nothing() -> None:
    text = "step 1\nTraceback (most recent call last):\n  File \"t.py\", line 3, in <module>\nKeyError: 'y'\n"
    returns = LogStream("\r" + text.replace("\n", "\n\r"), rank=0, windows=((0, 1), (8, 90_000)))
    assert evidence(returns) == evidence(LogStream(text, rank=0, windows=((0, 1), (7, 90_000))))


def test_a_byte_order_mark_changes_nothing() -> None:
    text = "KeyError: 'hard_negatives'\n" + "".join(f"step {number}\n" for number in range(9))
    log = LogStream(f"\ufeff{text}KeyError: 'y'\n", rank=0, windows=((0, 1), (len(text) + 1, 90_000)))
    assert evidence(log) == evidence(LogStream(f"{text}KeyError: 'y'\n", rank=0, windows=((0, 1), (len(text), 90_000))))


def test_line_ends_shift_no_line_numbers() -> None:
    front = "".join(f"step {number}\r\n" for number in range(200))
    log = LogStream(f"{front}gap\r\nKeyError: 'y'\r\n", rank=0, windows=((0, 1), (len(front), 90_000)))
    [error] = [one for one in evidence(log) if one.text == "KeyError: 'y'"]
    assert error.line == 90_001


def test_a_bar_that_is_written_again_and_again_stays_one_line() -> None:
    text = "\r 1%|#  | 1/99 [00:01<00:09]\r 2%|#  | 2/99 [00:02<00:09]\nKeyError: 'y'\n"
    event = {"status": "failed", "logs": [{"rank": 0, "tail": text}]}
    assert [one.line for one in EXTRACTOR.extract(build_case(event)).case.evidence if "KeyError" in one.text] == [2]
