"""Site layers of a test service, as retraining stores them."""

from classifiers.model.site.layer import SiteLayer
from service.learning.records import GateDecision, GateResult
from service.learning.shadow_figures import CauseChanges, ChangedFailure, DecisionChange, ShadowFigures
from tests.service.web.world import World

LAYER = "site-000000000000"
FIGURES = {
    "golden set": {
        "cases": 40,
        "side": [0.9, 0.95, 0.0, 0.1],
        "recall": {"hardware": [20, 0.9, 0.95], "user": [20, 1.0, 1.0]},
        "futile_resubmits": [0, 0],
    }
}
SHADOW = ShadowFigures(
    read=50,
    changed=2,
    by_cause=(CauseChanges(cause="SYS.5", read=30, changed=2), CauseChanges(cause="USER.1", read=20, changed=0)),
    decisions=(DecisionChange(before="resubmit_after", after="stop", failures=1, gpu_hours=16.0),),
    examples=(
        ChangedFailure(
            failure=1,
            headline="flexnet: no seat left",
            before="system SYS.5",
            after="user USER.4",
            decision_before="resubmit_after",
            decision_after="stop",
            gpu_hours=16.0,
        ),
    ),
    until="2026-11-20T11:00:00+00:00",
)


def add_layer(
    world: World,
    layer_id: str = LAYER,
    decision: GateDecision = "ask",
    *,
    labellers: dict[str, int] | None = None,
    base: str = "",
    reason: str = "12 of 12 labels are by ana: a second person has to agree",
    **review: list[str],
) -> str:
    """Store a candidate with the gate's decision, and labels to review; returns its id."""
    given = {"ana": 12} if labellers is None else labellers
    about = {
        "base": base,
        "labels": sum(given.values()),
        "groups": 4,
        "labellers": given,
        "parents": [],
        "data": f"labels of {layer_id}",
        **review,
    }
    gate = GateResult(decision, (reason,), FIGURES, SHADOW)
    with world.store.unit_of_work() as work:
        work.site_layers.add(layer_id, SiteLayer(about=about).text(), "the command line", gate)
    return layer_id
