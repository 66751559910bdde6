"""What counts as drift: certain, large enough, and not one job that fails a thousand times."""

import random
from dataclasses import replace

import pytest

from service.drift.comparison import Period, compare, ratio
from service.drift.records import AuditedAnswer, DriftFigure, GroupCounts, VersionCount


def groups(count: int, *, first: int = 1, **of_each: float) -> list[GroupCounts]:
    """Groups of ten failures each."""
    plain = GroupCounts("orion", "", 0, 10, measured=10, lines=100)
    return [
        replace(plain, fingerprint=f"1:{first + number}", first=first + number, **of_each)  # type: ignore[arg-type]
        for number in range(count)
    ]


def figure(name: str, recent: Period, reference: Period) -> DriftFigure:
    [cluster] = compare(recent, reference)
    return next(one for one in cluster.figures if one.measure == name)


@pytest.mark.parametrize(
    ("measure", "more"),
    [
        ("unknown_words", {"unknown": 4.0}),
        ("unmatched_lines", {"unmatched": 40}),
        ("abstained", {"abstained": 4}),
        ("contested", {"contested": 4}),
        ("corrected", {"corrected": 4}),
    ],
)
def test_a_measure_that_grows_in_many_groups_is_a_change_with_its_first_examples(
    measure: str, more: dict[str, float]
) -> None:
    recent = Period([*groups(10, first=100), *groups(10, first=200, **more)])
    found = figure(measure, recent, Period(groups(20)))
    assert found.change == 1
    assert found.recent is not None
    assert found.reference is not None
    assert found.recent.value == pytest.approx(0.2)
    assert found.recent.low > found.reference.value
    assert [one.failure for one in found.examples] == [200, 201, 202, 203, 204]
    assert figure(measure, Period(groups(20)), Period(groups(20))).change == 0


def test_one_group_that_fails_often_is_no_drift() -> None:
    flood = replace(groups(1, first=900)[0], failures=2_000, abstained=2_000)
    found = figure("abstained", Period([*groups(20), flood]), Period(groups(20)))
    assert found.change == 0
    assert found.recent is not None
    assert found.recent.value > 0.9
    assert found.recent.low < 0.5, "one group is one observation"


def test_small_changes_and_few_failures_are_no_drift() -> None:
    many = groups(400, abstained=1)
    assert figure("abstained", Period(many), Period(groups(400, abstained=1, first=500))).change == 0
    one_more = [*groups(380, abstained=1), *groups(20, first=900, abstained=5)]
    assert figure("abstained", Period(one_more), Period(many)).change == 0, "less than five points"
    assert figure("abstained", Period(groups(2, abstained=9)), Period(groups(20))).change == 0
    assert figure("abstained", Period(groups(20, abstained=9)), Period()).change == 0, "nothing to compare with"


def test_a_share_that_falls_is_a_change_too() -> None:
    assert figure("abstained", Period(groups(20)), Period(groups(20, abstained=5))).change == -1


def test_a_machine_that_is_too_sure_is_found_by_audits() -> None:
    answers = [AuditedAnswer("orion", number, 0.95, number % 2 == 0, 1.0) for number in range(40)]
    found = figure("confidence", Period(groups(5), answers), Period())
    assert found.change == 1
    assert found.recent is not None
    assert found.recent.value == pytest.approx(0.45)
    assert all(one.failure % 2 for one in found.examples), "failures that it got wrong"
    right = [replace(one, right=number % 20 != 0) for number, one in enumerate(answers)]
    assert figure("confidence", Period(groups(5), right), Period()).change == 0
    assert figure("confidence", Period(groups(5), answers[:10]), Period()).change == 0, "too few audits"


def test_versions_are_new_where_earlier_failures_were_measured() -> None:
    recent = [VersionCount("orion", "NCCL 2.22.3", 4, 7), VersionCount("orion", "NCCL 2.20.5", 9, 8)]
    before = [VersionCount("orion", "NCCL 2.20.5", 90, 1), VersionCount("vega", "NCCL 2.22.3", 90, 2)]
    [cluster] = compare(Period(groups(5), versions=recent), Period(groups(5), versions=before))
    assert [(one.version, one.failures, one.first.failure) for one in cluster.versions] == [("NCCL 2.22.3", 4, 7)]
    unmeasured = Period(groups(5, measured=0), versions=[])
    assert compare(Period(groups(5), versions=recent), unmeasured)[0].versions == ()


def test_the_interval_of_a_ratio_holds_its_value() -> None:
    assert ratio([]) is None
    assert ratio([(0, 0)]) is None
    for parts in ([(0, 10)] * 8, [(10, 10)] * 8, [(1, 10), (9, 10)], [(3, 7)]):
        found = ratio(parts)
        assert found is not None
        assert 0 <= found.low <= found.value <= found.high <= 1


def test_a_calibrated_machine_is_seldom_taken_for_one_that_is_not() -> None:
    rng, found = random.Random(3), []
    for size in (20, 40):
        for _ in range(300):
            sure = [rng.uniform(0.85, 0.95) for _ in range(size)]
            audits = [AuditedAnswer("orion", number, one, rng.random() < one, 1.0) for number, one in enumerate(sure)]
            [cluster] = compare(Period([GroupCounts("orion", "a", 1, 1)], audits), Period())
            found.append(next(one.change for one in cluster.figures if one.measure == "confidence"))
    assert sum(change != 0 for change in found) / len(found) <= 0.05
    assert not any(compare(Period((), audits), Period()))
