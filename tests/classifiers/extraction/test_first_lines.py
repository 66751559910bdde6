"""The first initiating line on logs of failing programs: compilers, package managers, test runners, launchers, servers.

`tests/data/first_lines/first_lines.jsonl.zst` has one object a line: `schema` ("first-line/1"), `id`, `program`,
`half`, `source`, `log`, and `first`, the 1-based numbers of the lines that a person marked as the beginning of the
failure (lines that state the same error). Each log is of a run that was made to fail for this set; nothing is trained
on it. The programs are split at random: rules were written with the half "development" alone.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import zstandard

from classifiers import signatures
from classifiers.contracts import Evidence, JobFacts, LogStream, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner, tidy

LOGS = Path(__file__).parents[2] / "data" / "first_lines" / "first_lines.jsonl.zst"
MOST_LINES_ON_AVERAGE = 2.5


@dataclass(frozen=True)
class MarkedLog:
    id: str
    program: str
    half: str
    log: str
    first: Sequence[int]

    def is_first(self, line: Evidence) -> bool:
        lines = self.log.split("\n")
        return line.line in self.first or line.text in {tidy(lines[number - 1]) for number in self.first}


@cache
def marked_logs() -> tuple[MarkedLog, ...]:
    text = zstandard.ZstdDecompressor().stream_reader(LOGS.read_bytes()).read().decode()
    rows = [json.loads(line) for line in text.splitlines() if line]
    return tuple(MarkedLog(**{name: row[name] for name in ("id", "program", "half", "log", "first")}) for row in rows)


@cache
def beginnings() -> dict[str, tuple[Evidence, ...]]:
    extractor = Extractor(Scanner(signatures.packaged()))
    job = JobFacts(status="failed", exit_code=1)
    found = {}
    for one in marked_logs():
        case = extractor.extract(RawCase(job=job, streams=(LogStream(text=one.log),))).case
        found[one.id] = tuple(
            line for line in case.evidence if line.role == "initiating" and line.stream != "scheduler"
        )
    return found


@pytest.mark.parametrize(("half", "floor"), [("development", 0.92), ("test", 0.75)])
def test_the_first_initiating_line_is_the_line_that_began_the_failure(half: str, floor: float) -> None:
    logs = [one for one in marked_logs() if one.half == half]
    wrong = [one.id for one in logs if not any(map(one.is_first, beginnings()[one.id][:1]))]
    assert 1 - len(wrong) / len(logs) >= floor, wrong


def test_few_lines_are_initiating() -> None:
    counts = [len(lines) for lines in beginnings().values()]
    assert sum(counts) / len(counts) <= MOST_LINES_ON_AVERAGE


def test_the_set_is_of_many_programs_and_each_mark_is_a_line() -> None:
    assert len({one.program for one in marked_logs()}) >= 50
    for one in marked_logs():
        lines = one.log.split("\n")
        assert one.first
        assert all(lines[number - 1].strip() for number in one.first), one.id
