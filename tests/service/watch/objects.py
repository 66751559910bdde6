"""Pods, Jobs and Nodes as a cluster shows them."""

import copy
from datetime import UTC, datetime
from typing import Any

from service.kubernetes.paths import Object

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ENDED = "2026-11-21T11:00:00Z"


def pod(uid: str = "p1", *, job: str | None = "train", **status: Any) -> Object:
    """A pod that has failed, of a Job unless `job` is None."""
    owner = [{"kind": "Job", "name": job, "uid": f"{job}-uid", "controller": True}] if job else []
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"train-{uid}",
            "namespace": "ml",
            "uid": uid,
            "resourceVersion": "5",
            "creationTimestamp": "2026-11-21T10:00:00Z",
            "ownerReferences": owner,
        },
        "spec": {"nodeName": "gpu1", "containers": [{"name": "main", "image": "reg/train:7"}]},
        "status": {
            "phase": "Failed",
            "startTime": "2026-11-21T10:00:05Z",
            "containerStatuses": [ended_container()],
            **status,
        },
    }


def ended_container(name: str = "main", code: int = 1, reason: str = "Error", at: str = ENDED) -> dict[str, Any]:
    terminated = {"exitCode": code, "reason": reason, "finishedAt": at}
    return {"name": name, "restartCount": 0, "state": {"terminated": terminated}}


def disruption(reason: str) -> dict[str, Any]:
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": "why",
        "lastTransitionTime": ENDED,
    }


def job(*conditions: tuple[str, str], uid: str = "train-uid", name: str = "train", **spec: Any) -> Object:
    return {
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": uid,
            "resourceVersion": "6",
            "creationTimestamp": "2026-11-21T10:00:00Z",
            "labels": {"kueue.x-k8s.io/queue-name": "gpus", "user": "ana"},
            "annotations": {"faultline/resubmit": "auto", "faultline/resubmit-of": "ml/Job/before"},
        },
        "spec": {"backoffLimit": 0, **spec},
        "status": {
            "startTime": "2026-11-21T10:00:01Z",
            "conditions": [
                {"type": kind, "status": "True", "reason": reason, "message": "words", "lastTransitionTime": ENDED}
                for kind, reason in conditions
            ],
        },
    }


def node(name: str = "gpu1", ready: str = "True", *taints: str, **conditions: str) -> Object:
    stated = {"Ready": ready, **conditions}
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": f"{name}-uid", "resourceVersion": "7", "labels": {"big": "x" * 100}},
        "spec": {"taints": [{"key": key, "effect": "NoExecute"} for key in taints]},
        "status": {
            "images": [{"names": ["x"]}],
            "conditions": [
                {
                    "type": kind,
                    "status": status,
                    "reason": f"{kind}Is{status}",
                    "message": "m",
                    "lastTransitionTime": ENDED,
                }
                for kind, status in stated.items()
            ],
        },
    }


def with_version(obj: Object, version: str) -> Object:
    made = copy.deepcopy(obj)
    made["metadata"]["resourceVersion"] = version
    return made
