"""Fields common to all kinds of Kubernetes objects: names, owners, conditions, times, resources."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson

from service.contracts.event import LARGEST_COUNT, Status
from service.contracts.kubernetes_name import KubernetesName
from service.formats import field_reading

# Fields without which a record is read all the same, with all that is below them.
OPTIONAL = frozenset(
    {"metadata.annotations", "metadata.creationTimestamp", "metadata.labels", "spec.activeDeadlineSeconds"}
    | {"spec.entrypoint", "spec.nodeName", "spec.nodeSelector", "status.message", "status.restarts", "status.startTime"}
)
# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
_SUFFIXES: dict[str, Decimal | int] = {
    "": 1, "m": Decimal("0.001"), "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50,
}  # fmt: skip
_QUANTITY = re.compile(r"(\d{1,16}(?:\.\d{1,9})?)(|m|k|[MGTP]i?|Ki)")
_QUEUE_LABELS = ("kueue.x-k8s.io/queue-name", "scheduling.volcano.sh/queue-name", "queue")
_GPU_TYPE_LABELS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator")
# Kinds that own Jobs, whose own end is read, with their API: of JobSet, of Kubeflow's trainer v2 and v1, of KubeRay.
JOB_OWNERS = {
    "JobSet": ("jobset.x-k8s.io/v1alpha2", "jobsets"),
    "TrainJob": ("trainer.kubeflow.org/v1alpha1", "trainjobs"),
    "PyTorchJob": ("kubeflow.org/v1", "pytorchjobs"),
    "RayJob": ("ray.io/v1", "rayjobs"),
}
_SUCCEEDED = ("Succeeded", "Complete", "Completed")
# A PyTorchJob has the reason PyTorchJobFailed for every failure (`pkg/controller.v1/common/job.go`).
_PAST_DEADLINE = "was active longer than specified deadline"
_POD_GROUP = "kueue.x-k8s.io/pod-group-name"
_OWN_PREFIX = "faultline/"
# A queueing controller creates jobs suspended; a suspension later than this after creation stopped a running job.
SUSPENDED_AT_CREATION = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Meta:
    """The validated metadata of an object."""

    namespace: str
    name: str
    uid: str | None
    labels: dict[str, str]
    annotations: Mapping[str, Any]
    owner: tuple[str, str] | None  # (kind, name) of the controller
    created_at: datetime | None
    deleted_at: datetime | None

    def full_name(self, kind: str) -> KubernetesName:
        """Return the name of the object, which is of this kind."""
        return KubernetesName(self.namespace, kind, self.name)


@dataclass(frozen=True, slots=True)
class Condition:
    """One entry of `status.conditions` that is True."""

    reason: str | None
    message: str | None
    at: datetime | None


def read_meta(obj: Mapping[str, Any]) -> Meta:
    """Read the metadata of an object.

    Raises:
        UnreadableRecord: the name is missing, or a type is wrong.
    """
    meta = field_reading.mapping(obj, "metadata")
    name = field_reading.text(meta, "name", "metadata.")
    if name is None:
        raise field_reading.unreadable("metadata.name", "a string")
    owner = None
    for reference in field_reading.mappings(meta, "ownerReferences", "metadata."):
        if reference.get("controller") is True:
            kind, owner_name = owner_kind(reference), field_reading.text(reference, "name")
            owner = (kind, owner_name) if kind and owner_name else None
    annotations = field_reading.mapping(meta, "annotations", "metadata.")
    labels = field_reading.texts(meta, "labels", "metadata.")
    labels |= {
        key: value for key, value in annotations.items() if key.startswith(_OWN_PREFIX) and isinstance(value, str)
    }
    return Meta(
        namespace=field_reading.text(meta, "namespace", "metadata.") or "default",
        name=name,
        uid=field_reading.text(meta, "uid", "metadata."),
        labels=labels,
        annotations=annotations,
        owner=owner,
        created_at=field_reading.instant(meta, "creationTimestamp", "metadata."),
        deleted_at=field_reading.instant(meta, "deletionTimestamp", "metadata."),
    )


def owner_kind(reference: Mapping[str, Any]) -> str | None:
    """Return the kind of an owner reference; `Job.GROUP` for a Job of another group than batch, such as Volcano's."""
    kind, version = field_reading.text(reference, "kind"), field_reading.text(reference, "apiVersion") or ""
    group = version.partition("/")[0] if "/" in version else ""
    return f"{kind}.{group}" if kind == "Job" and group not in {"", "batch"} else kind


def job_name(meta: Meta, kind: str) -> KubernetesName:
    """Return the name of the job that users know: the outermost controller that the object names.

    KubeRay's RayJob, Kubeflow's TrainJob and a LeaderWorkerSet own the direct owner of the pod; labels of the pod name
    them. Pods of a group of Kueue (https://kueue.sigs.k8s.io/docs/tasks/run/plain_pods/) have no owner: the group's
    Workload has the name of the group.
    """
    labels = meta.labels
    origin, origin_name = labels.get("ray.io/originated-from-crd"), labels.get("ray.io/originated-from-cr-name")
    if origin and origin_name:
        return KubernetesName(meta.namespace, origin, origin_name)
    jobset = labels.get("jobset.sigs.k8s.io/jobset-name")
    if jobset and kind != "JobSet":
        above = "TrainJob" if "trainer.kubeflow.org/trainjob-ancestor-step" in labels else "JobSet"
        return KubernetesName(meta.namespace, above, jobset)
    if workers := labels.get("leaderworkerset.sigs.k8s.io/name"):
        return KubernetesName(meta.namespace, "LeaderWorkerSet", workers)
    if meta.owner is not None and meta.owner[0] not in {"CronJob", "Node"}:
        return KubernetesName(meta.namespace, *meta.owner)
    if kind == "Pod" and (group := labels.get(_POD_GROUP, meta.annotations.get(_POD_GROUP))):
        return KubernetesName(meta.namespace, "Workload", group)
    return meta.full_name(kind)


def attempt_facts(meta: Meta, kind: str) -> dict[str, Any]:
    """Return the event fields that say whose attempt an object is: of its own, or of its outermost controller.

    The end of a pod is no end of its controller, nor is that of a Job whose controller has an end that is read. Other
    controllers, such as AppWrapper, end with their Job.
    """
    job = job_name(meta, kind)
    inner = kind == "Pod" or is_under_owner(meta, kind)
    return {"job_id": str(job), "name": job.name, "pod": meta.name if inner else None}


def is_under_owner(meta: Meta, kind: str) -> bool:
    """Return whether the outermost controller of an object is another one, of `JOB_OWNERS`."""
    above = job_name(meta, kind)
    return above != meta.full_name(kind) and above.kind in JOB_OWNERS


def event_id(meta: Meta, kind: str, *which: Any) -> str:
    """Return the identity of an object's end: its uid, or a digest of name and `which` if there is no uid."""
    if meta.uid is not None:
        return f"kubernetes:{kind}:{meta.uid}"
    digest = hashlib.sha256(orjson.dumps([str(meta.full_name(kind)), *which]))
    return f"kubernetes:{kind}:{digest.hexdigest()}"


def retry_index(meta: Meta) -> int | None:
    """Return the number of the attempt if a controller gives it."""
    for key in ("jobset.sigs.k8s.io/restart-attempt", "batch.kubernetes.io/job-index-failure-count"):
        value = meta.labels.get(key, meta.annotations.get(key))
        if isinstance(value, str) and value.isdecimal() and len(value) < len(str(LARGEST_COUNT)):
            return int(value)
    return None


def completion_index(meta: Meta) -> int | None:
    """Return the pod's index in an Indexed Job, which is its rank if each pod is one process."""
    key = "batch.kubernetes.io/job-completion-index"
    value = meta.labels.get(key, meta.annotations.get(key))
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < len(str(2**31)) else None


def true_conditions(status: Mapping[str, Any]) -> dict[str, Condition]:
    """Return the conditions with status True, by type."""
    found = {}
    for index, entry in enumerate(field_reading.mappings(status, "conditions", "status.")):
        within = f"status.conditions[{index}]."
        kind = field_reading.text(entry, "type", within)
        if kind is not None and entry.get("status") == "True":
            found[kind] = Condition(
                field_reading.text(entry, "reason", within),
                field_reading.text(entry, "message", within),
                field_reading.instant(entry, "lastTransitionTime", within),
            )
    return found


def condition_times(status: Mapping[str, Any]) -> list[datetime]:
    """Return when each condition changed last, whatever its status is."""
    found = []
    for index, entry in enumerate(field_reading.mappings(status, "conditions", "status.")):
        at = field_reading.instant(entry, "lastTransitionTime", f"status.conditions[{index}].")
        if at is not None:
            found.append(at)
    return found


@dataclass(frozen=True, slots=True)
class End:
    """How an object ended, and when. Without a condition it was deleted; one that is suspended may end again."""

    status: Status
    at: datetime
    condition: Condition | None
    suspended: bool = False

    @property
    def id_suffix(self) -> str:
        """What distinguishes this end from later ones of the same object, in the event's id."""
        return f":suspended:{self.condition.at}" if self.suspended and self.condition is not None else ""

    def facts(self) -> dict[str, Any]:
        """The event fields that follow from it."""
        reason, message = (
            ("Deleted", None) if self.condition is None else (self.condition.reason, self.condition.message)
        )
        return {"status": self.status, "reason": reason, "message": message, "ended_at": self.at}


def end_of(obj: Mapping[str, Any], meta: Meta, kind: str, *, deleted: bool) -> End | None:
    """How an object ended by its conditions, None if it has not ended.

    Args:
        obj: the object.
        meta: its metadata.
        kind: its kind, for the error.
        deleted: whether a watch has just reported its deletion.

    Raises:
        UnreadableRecord: it has ended, but says no time.
    """
    status = field_reading.mapping(obj, "status")
    conditions = true_conditions(status)
    failed, suspended = conditions.get("Failed"), conditions.get("Suspended")
    succeeded = next((conditions[name] for name in _SUCCEEDED if name in conditions), None)
    condition: Condition | None = None
    is_suspended = False
    if failed is not None:
        outcome, condition = Status.TIMEOUT if _is_past_deadline(failed) else Status.FAILED, failed
    elif succeeded is not None:
        outcome, condition = Status.SUCCEEDED, succeeded
    elif deleted:
        outcome = Status.CANCELLED
    elif suspended is not None and stopped_midway(meta, suspended):
        outcome, condition, is_suspended = Status.CANCELLED, suspended, True
    else:
        return None
    at = last_change(obj, meta) if condition is None else condition.at
    at = field_reading.instant(status, "completionTime", "status.") or at
    if at is None:
        expected = f"a time (lastTransitionTime) on the condition that ended the {kind}"
        raise field_reading.unreadable("status.conditions", expected)
    return End(outcome, at, condition, suspended=is_suspended)


def _is_past_deadline(failed: Condition) -> bool:
    return failed.reason == "DeadlineExceeded" or _PAST_DEADLINE in (failed.message or "")


def stopped_midway(meta: Meta, suspended: Condition | None) -> bool:
    """Return whether `Suspended` stopped a running job, as opposed to a job that waits in a queue."""
    if suspended is None or suspended.at is None or meta.created_at is None:
        return False
    return suspended.at - meta.created_at > SUSPENDED_AT_CREATION


def last_change(obj: Mapping[str, Any], meta: Meta) -> datetime | None:
    """Return the time of deletion or, if absent (objects without finalizers), of the last change."""
    if meta.deleted_at is not None:
        return meta.deleted_at
    changes = field_reading.mappings(field_reading.mapping(obj, "metadata"), "managedFields", "metadata.")
    times = [
        at for change in changes if (at := field_reading.instant(change, "time", "metadata.managedFields.")) is not None
    ]
    return max(times, default=None)


def common(meta: Meta, cluster: str | None, obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event fields that follow from the metadata alone."""
    named = field_reading.text(obj, "cluster") or field_reading.text(obj, "clusterName")
    return {
        "cluster": field_reading.cluster_name(named, cluster),
        "name": meta.name,
        "user": meta.labels.get("user"),
        "team": meta.labels.get("team", meta.namespace),
        "queue": next((meta.labels[key] for key in _QUEUE_LABELS if key in meta.labels), None),
        "scheduler": "kubernetes",
        "labels": meta.labels,
    }


def pod_spec_facts(spec: Mapping[str, Any], within: str, *, pods: int = 1) -> dict[str, Any]:
    """Return image, command and resources of a pod's spec; the resources are multiplied by `pods`."""
    containers = field_reading.mappings(spec, "containers", within)
    if not containers:
        return {}
    resources = [field_reading.mapping(one, "resources", f"{within}containers.") for one in containers]
    limits = [field_reading.mapping(one, "limits") or field_reading.mapping(one, "requests") for one in resources]
    gpus = sum(
        (quantity(amount) or 0) for limit in limits for name, amount in limit.items() if name.endswith("/gpu")
    )  # nvidia.com/gpu, amd.com/gpu ...
    cpus = sum(quantity(limit.get("cpu"), up=True) or 0 for limit in limits)
    memory = sum(quantity(limit.get("memory")) or 0 for limit in limits)
    selector = field_reading.mapping(spec, "nodeSelector", within)
    gpu_type = next((selector[key] for key in _GPU_TYPE_LABELS if isinstance(selector.get(key), str)), None)
    return {
        "image": field_reading.text(containers[0], "image", f"{within}containers."),
        "command": _command(containers[0]),
        "gpus": min(gpus * pods, LARGEST_COUNT) or None,
        "gpu_type": gpu_type,
        "requested": {
            "cpus": min(cpus * pods, LARGEST_COUNT) or None,
            "memory_bytes": min(memory * pods, LARGEST_COUNT) or None,
        },
    }


def quantity(value: Any, *, up: bool = False) -> int | None:
    """Convert a Kubernetes quantity (`500m`, `16Gi`, 8) to an integer; None if it is invalid."""
    if isinstance(value, int) and not isinstance(value, bool):
        return min(max(value, 0), LARGEST_COUNT)
    if not isinstance(value, str):
        return None
    hit = _QUANTITY.fullmatch(value)
    if hit is None:
        return None
    number = Decimal(hit[1]) * _SUFFIXES[hit[2]]
    if number > LARGEST_COUNT:
        return None
    return int(number) + (1 if up and number != int(number) else 0)


def _command(container: Mapping[str, Any]) -> str | None:
    parts: list[str] = []
    for key in ("command", "args"):
        value = container.get(key)
        if isinstance(value, Sequence) and not isinstance(value, str):
            parts += [part for part in value if isinstance(part, str)]
    return " ".join(parts) or None
