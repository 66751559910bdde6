"""How telling the words of a line are: learned from logs of which the first failing line is labelled."""

from collections.abc import Sequence

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.data.labelled_cases import LabelledCase, Labels
from classifiers.model import constants, line_weights
from classifiers.model.line_weights import EQUAL, LineWeights
from classifiers.model.vectorizer import features
from tests.classifiers.packaged_catalogue import EXTRACTOR

CALM = ("step 10 loss 2.5", "loading shard 3 of 9", "saved checkpoint at step 10")
TROUBLE = ("RuntimeError: the valve is stuck", "RuntimeError: the pump is stuck", "ValueError: the tap is stuck")


def _case(number: int, first: str, calm: Sequence[str], medium: str = "log") -> LabelledCase:
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream(text="\n".join([*calm, first])),))
    labels = Labels(best={}, allowed={}, root_line=first)
    return LabelledCase(f"case-{number}", "g", f"kind-{number}", raw, labels, {"medium": medium})


@pytest.fixture(scope="module")
def fitted() -> LineWeights:
    return line_weights.fit([_case(number, first, CALM) for number, first in enumerate(TROUBLE * 4)])


def test_a_line_of_a_fault_counts_more_than_lines_of_progress(fitted: LineWeights) -> None:
    assert fitted.weight("KeyError: the gate is stuck") > 2 * fitted.weight("step 99 loss 0.1")


def test_every_line_counts_something_and_none_more_than_one(fitted: LineWeights) -> None:
    for line in ("", "step 99 loss 0.1", *TROUBLE):
        assert constants.LEAST_LINE_WEIGHT <= fitted.weight(line) <= 1


def test_what_people_write_teaches_nothing() -> None:
    assert line_weights.fit([_case(1, TROUBLE[0], CALM, medium="report")]) == EQUAL


def test_without_labelled_lines_all_count_equally() -> None:
    assert line_weights.fit([]).weight("step 1") == pytest.approx(line_weights.fit([]).weight(TROUBLE[0]))


def test_lines_of_progress_barely_change_the_words_of_a_short_log(fitted: LineWeights) -> None:
    few, many = (
        features(
            EXTRACTOR.extract(
                RawCase(job=JobFacts(status="failed"), streams=(LogStream(text="\n".join([*calm, TROUBLE[0]])),))
            ),
            fitted,
        )
        for calm in ((), CALM * 2)
    )
    assert many["w:valve"] > 0.8 * few["w:valve"]
