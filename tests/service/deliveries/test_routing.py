import pytest

from service.deliveries.records import FailureFacts
from service.deliveries.routing import Route

VERDICT = {"side": "hardware", "cause": "HW.NODE.3", "cluster": "orion", "decision": "hold", "abstained": False}
FACTS = FailureFacts("failed", "ana", "vision", "gpu-long", 40.0, 64, new_kind=True)


@pytest.mark.parametrize(
    ("route", "takes"),
    [
        (Route(), True),
        (Route(type=("failure.*",)), True),
        (Route(type=("incident.opened",)), False),
        (Route(side=("hardware", "system")), True),
        (Route(side=("user",)), False),
        (Route(cause=("HW.*",)), True),
        (Route(cause=("HW.NODE.3",)), True),
        (Route(cause=("HW.NODE",)), False),
        (Route(cluster=("orion",), team=("vision",), queue=("gpu-long",), user=("ana",)), True),
        (Route(cluster=("orion",), team=("speech",)), False),
        (Route(decision=("hold",)), True),
        (Route(abstained=True), False),
        (Route(min_gpu_hours=40), True),
        (Route(min_gpu_hours=41), False),
        (Route(min_gpus=64, new_kind=True), True),
        (Route(min_gpus=65), False),
        (Route(new_kind=False), False),
    ],
)
def test_all_conditions_must_hold(route: Route, takes: bool) -> None:
    assert route.takes("failure.diagnosed", VERDICT, FACTS) is takes


@pytest.mark.parametrize(
    "route",
    [
        Route(team=("vision",)),
        Route(new_kind=False),
        Route(min_gpus=0),
        Route(min_gpu_hours=0),
        Route(side=("hardware",)),
    ],
)
def test_what_is_unknown_fulfils_no_condition(route: Route) -> None:
    assert not route.takes("failure.diagnosed", {}, None)
