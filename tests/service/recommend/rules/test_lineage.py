"""Rules about the lineage: repeated failures, limits, windows, time budget."""

from dataclasses import replace
from datetime import timedelta

from service.contracts.advice import Advice
from service.recommend import policy
from service.recommend.advise import advise
from service.recommend.facts import Lineage, PastResubmit
from tests.service.recommend.sample_facts import ALONE, NOW, PASSING, ran

BUILT_IN = policy.built_in()
LIMITS = BUILT_IN.limits


def after(lineage: Lineage) -> Advice:
    return advise(PASSING, ran(1), replace(ALONE, lineage=lineage), BUILT_IN)


def resubmits(count: int, side: str = "system", *, hours_ago: float = 40) -> tuple[PastResubmit, ...]:
    return tuple(PastResubmit(NOW - timedelta(hours=hours_ago), side) for _ in range(count))  # type: ignore[arg-type]


def test_the_same_failure_without_progress_stops() -> None:
    advice = after(Lineage("a", attempts=2, same_fingerprint_without_progress=LIMITS.same_failure))
    assert (advice.decision, advice.rule) == ("stop", "same failure again")
    assert any("2 times in a row" in reason for reason in advice.reasons)


def test_progress_resets_it() -> None:
    lineage = Lineage("a", attempts=2, same_fingerprint_without_progress=LIMITS.same_failure, progressed=True)
    assert after(lineage).decision == "resubmit_after"


def test_infrastructure_resubmits_have_their_own_limit() -> None:
    assert after(Lineage(resubmits=resubmits(LIMITS.infra_per_lineage - 1))).mode == "act"
    full = after(Lineage(resubmits=resubmits(LIMITS.infra_per_lineage)))
    assert (full.decision, full.rule) == ("stop", "resubmits of this job")
    assert after(Lineage(resubmits=resubmits(50, "user"))).mode == "act"  # the user's own count elsewhere


def test_a_full_window_holds_until_the_oldest_is_past() -> None:
    full = after(Lineage(resubmits=resubmits(LIMITS.infra_per_window, hours_ago=1)))
    assert (full.decision, full.held_by, full.mode) == ("hold", "window", "act")
    assert full.action is not None
    assert after(Lineage(resubmits=resubmits(LIMITS.infra_per_window, hours_ago=25))).decision == "resubmit_after"


def test_a_lineage_has_a_time_budget() -> None:
    assert after(Lineage(first_at=NOW - timedelta(hours=LIMITS.total_hours - 1))).mode == "act"
    late = after(Lineage(first_at=NOW - timedelta(hours=LIMITS.total_hours)))
    assert (late.decision, late.rule) == ("stop", "time budget")


def test_counts_are_by_side_and_time() -> None:
    lineage = Lineage(resubmits=(*resubmits(2), *resubmits(3, "user", hours_ago=1)))
    assert (lineage.resubmitted(user=False), lineage.resubmitted(user=True)) == (2, 3)
    assert lineage.resubmitted(user=True, since=NOW - timedelta(hours=2)) == 3
    assert ALONE.lineage.resubmitted(user=False) == 0
