"""What shadow mode would have brought, from the measured success of the same cause and plan."""

import pytest

from service.resubmissions.records import Rate
from service.resubmissions.repository.funnel import Funnel, ShadowCount
from service.web.pages.operations.automation_funnel import estimate


def rate(cause: str, helped: int, failed: int, policy: str = "a") -> Rate:
    return Rate("orion", cause, "again", policy, helped, failed, 0, 0, None, None, None, None)


def test_each_cause_is_estimated_by_its_own_success() -> None:
    shadow = (
        ShadowCount("orion", "SYS.5", "again", 10, 30.0, 200.0),
        ShadowCount("orion", "HW.GPU.1", "again", 4, 8.0, 99.0),
        ShadowCount("vega", "SYS.5", "again", 2, 1.0),
    )
    funnel = Funnel(16, 0, 0, 0, 0, 0, 0.0, 0.0, shadow)
    found = estimate(funnel, [rate("SYS.5", 30, 10), rate("SYS.5", 30, 10, "b"), rate("HW.GPU.1", 0, 0)])
    assert (found.requests, found.measured, found.gpu_hours_lost) == (16, 10, 39.0)
    assert found.helped == pytest.approx(7.5, abs=0.2)
    assert found.low < 7.5 < found.high <= 10
    assert found.rescued == pytest.approx(20 * found.helped), "a cause without measured success promises nothing"
    assert found.rescued_low < 150.0 < found.rescued_high <= 200.0


def test_outcomes_that_were_all_successes_promise_no_certain_success() -> None:
    shadow = (ShadowCount("orion", "SYS.5", "again", 40, 163.0, 2_092.0),)
    funnel = Funnel(40, 0, 0, 0, 0, 0, 0.0, 0.0, shadow)
    few, many = (estimate(funnel, [rate("SYS.5", helped, 0)]) for helped in (3, 300))
    for found in (few, many):
        assert found.low < found.helped < found.high, "an estimate lies inside its own interval"
        assert found.rescued_low < found.rescued < found.rescued_high
    assert few.helped < many.helped < 40
