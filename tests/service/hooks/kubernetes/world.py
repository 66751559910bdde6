"""A cluster in memory that keeps what it is given, for tests of the hook; the real one is in tests/flows."""

import copy
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from service.hooks.request import LeaseExpired, Request
from service.kubernetes.errors import AlreadyExists, ClusterUnavailable, ObjectNotFound, RequestRefused
from service.kubernetes.paths import Object, named

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
OLD = "train"


def job(name: str = OLD, **spec: Any) -> Object:
    """A Job that has failed for good, as the server has it."""
    container = {
        "name": "main",
        "image": "reg/train:7",
        "resources": {"limits": {"memory": "8Gi", "nvidia.com/gpu": "8"}, "requests": {"memory": "8Gi"}},
    }
    generated = {
        "controller-uid": "11-22",
        "batch.kubernetes.io/controller-uid": "11-22",
        "job-name": name,
        "batch.kubernetes.io/job-name": name,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": "11-22",
            "resourceVersion": "77",
            "generation": 1,
            "creationTimestamp": "2026-11-21T10:00:00Z",
            "labels": {**generated, "team": "vision"},
            "annotations": {"faultline/resubmit": "auto", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {
            "backoffLimit": 0,
            "suspend": False,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "11-22"}},
            "template": {
                "metadata": {"creationTimestamp": None, "labels": {**generated, "app": "train"}},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
            **spec,
        },
        "status": {"failed": 1, "conditions": [condition("FailureTarget"), condition("Failed")]},
    }


def condition(kind: str, reason: str = "BackoffLimitExceeded") -> dict[str, str]:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": "words",
        "lastTransitionTime": "2026-11-21T11:00:00Z",
    }


def request(**changed: Any) -> Request:
    values: dict[str, Any] = {
        "request_id": "r7",
        "lease_token": "token",
        "cluster": "lab",
        "job_id": f"ml/Job/{OLD}",
        "attempt": None,
        "action": "submit",
        "good_until": NOW + timedelta(minutes=2),
        "extra": {"labels": {"faultline/lineage": "lab/ml/Job/train", "faultline/request": "r7"}},
    }
    return Request(**(values | changed))


class Lease:
    """One that lasts, or has ended."""

    def __init__(self, *, over: bool = False) -> None:
        self.over = over

    def check(self, takes_s: float = 0.0) -> None:
        del takes_s
        if self.over:
            raise LeaseExpired("over")


class Cluster:
    """Objects by path. `refuses`: an error that each request of a method and ending raises."""

    def __init__(self, *jobs: Object) -> None:
        self.objects: dict[str, Object] = {}
        self.refuses: dict[tuple[str, str], Exception] = {}
        self.after_create: Exception | None = None
        for one in jobs:
            self.objects[named("batch/v1", "jobs", "ml", one["metadata"]["name"])] = copy.deepcopy(one)

    @property
    def jobs(self) -> dict[str, Object]:
        return {path.rpartition("/")[2]: one for path, one in self.objects.items() if "/jobs/" in path}

    @property
    def events(self) -> list[Object]:
        return [one for path, one in self.objects.items() if "/events/" in path]

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Object:
        self._refuse("get", path)
        if query is not None:
            return {"items": [one for at, one in self.objects.items() if at.startswith(path + "/")]}
        if path not in self.objects:
            raise ObjectNotFound(f"{path}: 404", 404)
        return copy.deepcopy(self.objects[path])

    def create(self, path: str, body: Mapping[str, Any], query: Mapping[str, Any] | None = None) -> Object:
        del query
        self._refuse("create", path)
        name = body["metadata"].get("name") or f"{body['metadata']['generateName']}{len(self.objects)}"
        place = f"{path}/{name}"
        if place in self.objects:
            raise AlreadyExists(f"{place}: 409", 409, "AlreadyExists")
        self.objects[place] = copy.deepcopy(dict(body))
        if self.after_create is not None:
            raise self.after_create
        return self.objects[place]

    def close(self) -> None:
        pass

    def _refuse(self, method: str, path: str) -> None:
        for (of, ending), error in self.refuses.items():
            if of == method and path.endswith(ending):
                raise error


FORBIDDEN = RequestRefused("jobs is forbidden", 403, "Forbidden")
AWAY = ClusterUnavailable("no answer")
