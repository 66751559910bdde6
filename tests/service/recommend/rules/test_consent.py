"""Rules about consent."""

from dataclasses import replace

import pytest

from service.contracts.advice import Mode
from service.recommend import policy
from service.recommend.advise import advise
from service.recommend.facts import OptIn, OptInMode
from tests.service.recommend.sample_facts import ALONE, PASSING, ran

BUILT_IN = policy.built_in()


@pytest.mark.parametrize(
    ("result", "mode"),
    [("auto", "act"), ("scheduler", "act"), ("shadow", "would_have"), ("advise", "advise"), ("never", "advise")],
)
def test_only_jobs_with_opt_in_are_resubmitted(result: OptInMode, mode: Mode) -> None:
    advice = advise(PASSING, ran(1), replace(ALONE, opt_in=OptIn(result, "test")), BUILT_IN)
    assert advice.mode == mode
    assert advice.action is not None
    assert advice.action.ask_scheduler is (result == "scheduler")


def test_a_job_with_a_retrier_of_its_own_gets_advice_only() -> None:
    advice = advise(PASSING, ran(1), replace(ALONE, retrier="the Argo workflow"), BUILT_IN)
    assert advice.mode == "advise"
    assert "own retrier: the Argo workflow retries it: advice only" in advice.reasons


def test_dependent_jobs_and_array_tasks_are_noted() -> None:
    advice = advise(PASSING, ran(1), replace(ALONE, dependents=("41", "42"), array_task=True), BUILT_IN)
    assert "waiting jobs: dependent jobs: 41, 42" in advice.reasons
    assert any("only this task" in reason for reason in advice.reasons)
    assert advice.mode == "act"
