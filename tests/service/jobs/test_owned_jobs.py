"""A TrainJob with its JobSet, Jobs and pods, sent as Kubernetes has them, is one job with one failure."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.service.web.world import NOW, World, lines, make_world

CLUSTER = "k8s"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def stated(kind: str, condition: str, name: str, hours: float, owner: tuple[str, str] | None, **more: Any) -> Any:
    """An object that ended so many hours ago, after half an hour."""
    ended = (NOW - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    created = (NOW - timedelta(hours=hours + 0.5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    owners = [] if owner is None else [{"kind": owner[0], "name": owner[1], "controller": True}]
    labels = {"jobset.sigs.k8s.io/jobset-name": "ft"} if kind in {"Job", "Pod"} else {}
    labels |= {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"} if kind in {"Job", "Pod"} else {}
    reason = {"type": condition, "status": "True", "reason": "Why", "message": "words", "lastTransitionTime": ended}
    terminated = {"exitCode": 1, "reason": "Error", "finishedAt": ended}
    status: dict[str, Any] = {"conditions": [reason]}
    if kind == "Pod":
        container = {"name": "node", "restartCount": 0, "state": {"terminated": terminated}}
        status = {"phase": "Failed", "containerStatuses": [container]}
    return {
        "apiVersion": "v1",
        "kind": kind,
        "cluster": CLUSTER,
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": f"{kind}-{name}-{hours}",
            "creationTimestamp": created,
            "labels": labels,
            "ownerReferences": owners,
        },
        "spec": {"nodeName": "gpu1"},
        "status": status,
        **more,
    }


def objects(hours: float) -> list[Any]:
    jobs = [stated("Job", "Failed", f"ft-{role}-0", hours, ("JobSet", "ft")) for role in ("node", "launcher")]
    pods = [stated("Pod", "Failed", f"ft-node-0-{n}", hours, ("Job", "ft-node-0")) for n in range(3)]
    return [*pods, *jobs, stated("JobSet", "Failed", "ft", hours, ("TrainJob", "ft"))]


def failed(world: World, sent: Sequence[Any]) -> tuple[int, int]:
    """The number of failed jobs that are counted, and of failures that people see."""
    client = world.client()
    answer = client.post("/api/v1/events", content=lines(*sent)).json()
    assert (answer["rejected"], answer["skipped"]) == ([], 0)
    since = (NOW - timedelta(days=7)).isoformat().replace("+00:00", "Z")
    stats = client.get("/api/v1/stats", params={"since": since}).json()["stats"]
    return stats["failed"], len(client.get("/api/v1/failures").json()["items"])


@pytest.mark.parametrize("order", [1, -1])
def test_it_is_one_failure_in_any_order(world: World, order: int) -> None:
    sent = [*objects(1), stated("TrainJob", "Failed", "ft", 1, None)]
    assert failed(world, sent[::order]) == (1, 1)


def test_it_is_one_failure_without_the_end_of_the_train_job_and_another_one_on_the_next_day(world: World) -> None:
    assert failed(world, objects(25)) == (1, 1)
    assert failed(world, objects(1)) == (2, 2)
    assert failed(world, [stated("TrainJob", "Failed", "ft", 1, None)]) == (2, 2)


def test_one_that_restarted_and_succeeded_has_not_failed(world: World) -> None:
    sent = [*objects(1), stated("TrainJob", "Complete", "ft", 0.5, None)]
    assert failed(world, sent)[0] == 0
