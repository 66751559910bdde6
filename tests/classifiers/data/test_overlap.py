"""Nothing of a set used for measuring is in the training data: measuring on what one trains on proves nothing."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from classifiers.composition import training_cases
from classifiers.data.labelled_cases import LabelledCase

LONG = 60
SHINGLE = 5
MOST_SHARED = 0.8
# Below this many shingles a log is one message that software prints alike everywhere; the line rule covers it.
LEAST_SHINGLES = 10
CASES = os.environ.get("TEST_CASES")

pytestmark = pytest.mark.skipif(CASES is None, reason="TEST_CASES names no measured set to compare with")


def _normal(line: str) -> str:
    return re.sub(r"\W+", " ", line).strip().lower()


def _texts(case: LabelledCase) -> Iterator[str]:
    yield from (stream.text for stream in case.raw.streams)
    yield from (event.text for event in case.raw.node_events)


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = _normal(text).split()
    return {tuple(words[at : at + SHINGLE]) for at in range(len(words) - SHINGLE + 1)}


def _measured() -> list[str]:
    return [json.loads(line)["log"] for line in Path(CASES or "").read_text(encoding="utf-8").splitlines() if line]


def _composed() -> list[LabelledCase]:
    return [*training_cases.composed(), *training_cases.long_runs()]


def test_no_long_line_of_a_composed_case_stands_in_the_measured_set() -> None:
    known = {normal for log in _measured() for line in log.splitlines() if len(normal := _normal(line)) >= LONG}
    shared = {
        (case.id, line)
        for case in _composed()
        for text in _texts(case)
        for line in text.splitlines()
        if _normal(line) in known
    }
    assert not shared


def test_no_composed_log_is_mostly_one_of_the_measured_set() -> None:
    measured = [_shingles(log) for log in _measured()]
    by_shingle: dict[tuple[str, ...], list[int]] = {}
    for number, shingles in enumerate(measured):
        for shingle in shingles:
            by_shingle.setdefault(shingle, []).append(number)
    too_close = []
    for case in _composed():
        own = _shingles("\n".join(_texts(case)))
        shared = Counter(number for shingle in own for number in by_shingle.get(shingle, ()))
        for number, count in shared.items():
            sizes = [size for size in (len(own), len(measured[number])) if size >= LEAST_SHINGLES]
            if any(count > MOST_SHARED * size for size in sizes):
                too_close.append((case.id, number, count))
    assert not too_close
