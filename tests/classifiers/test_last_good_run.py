"""Lines that the last good run printed too: pairs of logs of one job."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from classifiers import last_good_run, line_hashes
from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.passes import IN_LAST_GOOD_RUN

PAIRS = tomllib.loads(Path("tests/data/last_good_run.toml").read_text(encoding="utf-8"))["pair"]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["name"])
def test_the_failure_begins_with_a_line_that_the_good_run_does_not_have(
    extractor: Extractor, pair: dict[str, Any]
) -> None:
    good = last_good_run.good_run([pair["good"]], "41")
    raw = RawCase(JobFacts(status="failed"), (LogStream(pair["failing"]),), good_run=good)
    evidence = extractor.extract(raw).case.evidence
    first = next(line for line in evidence if line.role == "initiating" and line.stream != "scheduler")
    assert pair["first"] in first.text
    used = [line.text for line in evidence if line.note is None]
    for words in pair["not_first"]:
        assert not any(words in text for text in used)


def test_a_line_of_the_good_run_is_shown_with_the_reason(extractor: Extractor) -> None:
    pair = next(one for one in PAIRS if one["first"] == "Type 'number' is not assignable")
    good = last_good_run.good_run([pair["good"]], "cluster-job 41")
    raw = RawCase(JobFacts(status="failed"), (LogStream(pair["failing"]),), good_run=good)
    noted = [line for line in extractor.extract(raw).case.evidence if line.note is not None]
    assert [line.role for line in noted] == ["context"] * len(noted)
    assert any("Critical dependency" in line.text for line in noted)
    assert {line.note for line in noted} == {f"{IN_LAST_GOOD_RUN} (cluster-job 41)"}


def test_an_error_that_ends_the_log_counts_although_the_good_run_survived_it(extractor: Extractor) -> None:
    frames = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n'
    error = f"{frames}ValueError: the cache file is damaged\n"
    good = last_good_run.good_run([error + "".join(f"rebuilt cache entry number {n}\n" for n in range(30))])
    raw = RawCase(JobFacts(status="failed"), (LogStream(error),), good_run=good)
    first = extractor.extract(raw).case.evidence[0]
    assert (first.role, first.text) == ("initiating", "ValueError: the cache file is damaged")


def test_a_failure_without_any_line_of_its_own_has_no_beginning_in_the_log(extractor: Extractor) -> None:
    text = "WARNING could not read shard number 17: unexpected end of data\nthe epoch is complete after some steps\n"
    raw = RawCase(JobFacts(status="node_fail"), (LogStream(text),), good_run=last_good_run.good_run([text]))
    evidence = extractor.extract(raw).case.evidence
    assert all(line.stream == "scheduler" for line in evidence if line.note is None)


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("2026-01-02 03:04:05 ERROR lost worker 17 after 3.5 s", True),
        ("ERROR lost worker 4 after 120 s", True),
        ("ERROR lost worker 0 after 120 s", True),
        ("[rank0]: the check found 5 errors in the list", True),
        ("the check found 0 errors in the list", False),
        ("ERROR lost worker 4 after 120 min", False),
        ("error", False),
    ],
)
def test_lines_are_compared_without_header_and_numbers(line: str, *, same: bool) -> None:
    run = last_good_run.good_run(
        ["2026-11-20 10:00:00 ERROR lost worker 3 after 8 s\nerror\n[rank1]: the check found 3 errors in the list\n"]
    )
    assert line_hashes.has_line(run, line) is same


def test_a_long_log_keeps_a_bounded_number_of_lines_and_all_words_of_failure_among_them() -> None:
    words = [f"error: module {chr(97 + n % 26)}{chr(97 + n // 26 % 26)} is missing from the list" for n in range(600)]
    text = "\n".join([*(f"progress of part {chr(97 + n % 26)} {n}" for n in range(50_000)), *words, "x" * 9_000])
    run = last_good_run.good_run([text])
    assert len(run.lines) <= last_good_run.MOST_LINES
    assert all(line_hashes.has_line(run, line) for line in words)
    assert last_good_run.from_bytes(last_good_run.to_bytes(run)).lines == run.lines


def test_the_number_of_lines_has_a_limit() -> None:
    names = (f"{a}{b}{c}" for a in "abcdefghij" for b in "abcdefghijklmnopqrst" for c in "abcdefghijklmnopqrstuvwxyz")
    run = last_good_run.good_run(["\n".join(f"error: module {name} is missing" for name in names)])
    assert len(run.lines) == last_good_run.MOST_LINES
