"""Rules about the value of a resubmit: success rate, and GPU-hours saved and wasted."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from classifiers.contracts import JobFacts
from service.contracts.advice import Advice
from service.recommend import policy
from service.recommend.advise import advise
from service.recommend.facts import History, KnownCheckpoint, OpenIncident, Tally
from service.recommend.rules import cost_and_success
from tests.service.recommend.sample_facts import ALONE, NOW, PASSING, ran

BUILT_IN = policy.built_in()


def decide_for(job: JobFacts, helped: int = 0, failed: int = 0, checkpoint: KnownCheckpoint | None = None) -> Advice:
    history = History(resubmits={"again": Tally(helped, failed)})
    return advise(PASSING, job, replace(ALONE, history=history, checkpoint=checkpoint), BUILT_IN)


def test_a_small_job_is_resubmitted_and_a_huge_one_needs_a_person() -> None:
    assert decide_for(ran(10, gpus=4)).decision == "resubmit_after"
    huge = decide_for(ran(10, gpus=4000))
    assert (huge.decision, huge.rule) == ("ask", "cost")
    assert any("GPU-hours are expected to be wasted (4000 GPUs, 10.0 hours to repeat)" in one for one in huge.reasons)


def test_a_fresh_checkpoint_makes_the_huge_one_cheap() -> None:
    fresh = KnownCheckpoint("c", 1, NOW - timedelta(minutes=10))
    advice = decide_for(ran(10, gpus=4000), checkpoint=fresh)
    assert advice.decision == "resubmit_after"
    assert advice.figures["redone_hours"] == pytest.approx(1 / 6)


def test_measured_success_moves_the_figures() -> None:
    job = ran(4, gpus=64)
    before, good, bad = decide_for(job), decide_for(job, helped=30), decide_for(job, failed=60)
    assert bad.figures["success"] < before.figures["success"] < good.figures["success"]
    assert (good.decision, bad.decision) == ("resubmit_after", "ask")


def test_the_cost_is_not_estimated_without_size_and_times() -> None:
    advice = decide_for(JobFacts(status="failed"))
    assert advice.decision == "resubmit_after"
    assert advice.figures == {}


def test_a_plan_with_a_low_success_rate_is_demoted() -> None:
    history = History(under_policy={"again": Tally(1, 19)})
    advice = advise(PASSING, ran(1), replace(ALONE, history=history), BUILT_IN)
    assert (advice.decision, advice.mode) == ("resubmit_after", "advise")
    assert any("only 1 of 20 such resubmits helped" in one for one in advice.reasons)
    few = History(under_policy={"again": Tally(0, BUILT_IN.demotion.at_least - 1)})
    assert advise(PASSING, ran(1), replace(ALONE, history=few), BUILT_IN).mode == "act"
    elsewhere = History(under_policy={"elsewhere": Tally(1, 19)})
    assert advise(PASSING, ran(1), replace(ALONE, history=elsewhere), BUILT_IN).mode == "act"


def test_a_successful_probe_outweighs_earlier_failures() -> None:
    history = History(resubmits={"again": Tally(0, 99)}, under_policy={"again": Tally(0, 99)})
    incident = OpenIncident(1, "k", NOW, turn_at=NOW)
    advice = advise(PASSING, ran(4, gpus=64), replace(ALONE, history=history, incident=incident), BUILT_IN)
    assert (advice.decision, advice.mode) == ("resubmit_after", "act")


def test_the_gate_can_be_switched_off() -> None:
    off = policy.parse('version = "1"\n[cost]\nenabled = false\n')
    assert advise(PASSING, ran(10, gpus=4000), ALONE, off).decision == "resubmit_after"


@given(st.integers(0, 80), st.integers(0, 80), st.floats(0.01, 0.99))
def test_the_tail_is_the_beta_distributions(helped: int, failed: int, floor: float) -> None:
    assert cost_and_success.below(helped, failed, floor) == pytest.approx(
        beta(helped + 1, failed + 1).cdf(floor), abs=1e-9
    )


@pytest.mark.parametrize(
    ("helped", "failed", "floor"),
    [(600, 600, 0.5), (3_000, 3_000, 0.2), (4_650, 350, 0.93), (20, 5_000, 0.005), (2_000, 0, 1.0), (0, 2_000, 0.0)],
)
def test_thousands_of_outcomes_have_a_probability_too(helped: int, failed: int, floor: float) -> None:
    assert cost_and_success.below(helped, failed, floor) == pytest.approx(
        beta(helped + 1, failed + 1).cdf(floor), abs=1e-9
    )


def test_the_prior_has_the_weight_of_its_outcomes() -> None:
    assert cost_and_success.mean(Tally(), 0.8, 10) == pytest.approx(0.8)
    assert cost_and_success.mean(Tally(0, 10), 0.8, 10) == pytest.approx(0.4)
