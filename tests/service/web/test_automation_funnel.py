"""What shadow mode would have brought, from the measured success of the same cause and plan."""

from service.requests.records import Rate
from service.requests.repository.funnel import Funnel, ShadowCount
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
    assert found.helped == 7.5
    assert found.low < 7.5 < found.high <= 10
    assert found.rescued == 150.0, "three quarters of 200; a cause without measured success promises nothing"
    assert found.rescued_low < 150.0 < found.rescued_high <= 200.0
