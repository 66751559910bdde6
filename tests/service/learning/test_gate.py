"""What the gate refuses or asks about, from answers before and after alone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest

from classifiers.data.labelled_cases import LabelledCase
from classifiers.evaluation.metrics import Answer
from service.learning import gate
from service.learning.gate import Comparison, LabelFacts
from service.learning.records import GateResult
from service.learning.retraining import NOISE_EVENTS, among_noise, split_newest
from tests.classifiers.conftest import labelled
from tests.service.learning.test_retraining import LICENCE
from tests.service.learning.world import World

FACTS: Final = LabelFacts(10, {"ana": 5, "ben": 5}, 0, 0)


@pytest.fixture
def dialect(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


def answers(cases: Sequence[LabelledCase], *, confidence: float = 0.95, **changed: str) -> list[Answer]:
    """The right answers, with some axes changed."""
    best = [{axis: code for axis, code in one.labels.best.items() if code is not None} for one in cases]
    return [Answer({**one, **changed}, confidence) for one in best]


def judged(cases: Sequence[LabelledCase], after: Sequence[Answer]) -> GateResult:
    return gate.judge([Comparison("golden set", cases, answers(cases), after)], FACTS)


def test_a_candidate_that_would_resubmit_a_futile_failure_is_refused() -> None:
    cases = [labelled("oom", number) for number in range(20)]
    result = judged(cases, [*answers(cases[:19]), *answers(cases[19:], retry="helps")])
    assert (result.decision, result.reasons) == (
        "refuse",
        ("golden set: 1 futile failure would be resubmitted, 0 before",),
    )


def test_two_lost_failures_of_a_side_are_refused_and_one_is_not() -> None:
    cases = [labelled("oom", number) for number in range(20)]
    for lost, decision in ((1, "promote"), (2, "refuse")):
        after = [*answers(cases[lost:]), *answers(cases[:lost], side="system")]
        assert judged([*cases[lost:], *cases[:lost]], after).decision == decision


def test_a_person_is_asked_where_confidences_become_worse() -> None:
    cases = [labelled("oom", number) for number in range(20)]
    result = judged(cases, answers(cases, confidence=0.7))
    assert result.decision == "ask"
    assert "the calibration error grows from 0.050 to 0.300" in result.reasons[0]
    assert judged(cases[:19], answers(cases[:19], confidence=0.7)).decision == "promote", "too few to tell"


def test_the_newest_groups_are_held_out_however_new_their_later_labels_are() -> None:
    def at(number: int, day: int) -> LabelledCase:
        return replace(labelled("oom", number), group=f"g{number}", provenance={"when": f"2026-11-{day:02d}"})

    labels = [at(0, 1), at(0, 29), *(at(number, 10 + number) for number in range(1, 10))]
    older, newest = split_newest(labels)
    assert {one.group for one in newest} == {"g8", "g9"}
    assert len(older) + len(newest) == len(labels)


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_the_newest_labels_are_measured_with_a_layer_that_does_not_know_them(world: World) -> None:
    failures = {"red": 1, "blue": 1, "green": 1, "grey": 1, "pink": gate.HELD_OUT_LABELS}
    for word, count in failures.items():
        for number in range(count):
            row = world.fails(f"{word} {LICENCE.format(n=number)} of the {word} pool")
            assert row.side != "user"
            world.label(row, "user", "USER.4", who=("ana", "ben", "cem", "dan")[number % 4])
        world.clock.sleep(60)
    made = world.retrain()
    assert len(made.fit.layer.memory.entries) == len(failures)
    figures = made.gate.figures["newest labels"]
    assert (figures["cases"], figures["side"][:2]) == (gate.HELD_OUT_LABELS, [0.0, 0.0])
    assert made.gate.figures["packaged cases among noise"]["cases"] == len(world.benchmark[::2])


def test_packaged_cases_among_noise_keep_their_labels_and_get_other_events_and_lines() -> None:
    cases = [labelled("oom", number) for number in range(3)]
    noisy = among_noise(cases)
    assert [one.labels for one in noisy] == [one.labels for one in cases]
    for one, plain in zip(noisy, cases, strict=True):
        assert len(one.raw.node_events) == NOISE_EVENTS
        text = one.raw.streams[0].text
        assert all(line in text for line in plain.raw.streams[0].text.splitlines())
        assert len(text.splitlines()) > len(plain.raw.streams[0].text.splitlines())
    assert among_noise(cases) == noisy


def test_a_slow_decline_is_refused_as_a_whole() -> None:
    cases = [labelled("oom", number) for number in range(100)]
    one, two = ([*answers(cases[lost:]), *answers(cases[:lost], side="system")] for lost in (1, 2))
    step = Comparison("packaged cases", cases, one, two)
    whole = Comparison("packaged cases, compared with the packaged model", cases, answers(cases), two)
    assert gate.judge([step], FACTS).decision == "promote"
    result = gate.judge([step], FACTS, since_packaged=[whole])
    assert result.decision == "refuse"
    assert "packaged model: 2 of 100 user failures are no longer recognised" in result.reasons[0]
    assert set(result.figures) == {"packaged cases"}


def test_what_is_asked_says_that_the_golden_set_was_changed() -> None:
    cases = [labelled("oom", number) for number in range(20)]
    result = gate.interrupted(judged(cases, answers(cases)))
    assert result.decision == "ask"
    assert "golden set was changed" in result.reasons[0]
    refused = gate.interrupted(judged(cases, answers(cases, side="system")))
    assert refused.decision == "refuse"
    assert "golden set was changed" in refused.reasons[-1]
