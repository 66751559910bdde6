"""Maps the final state of a cluster object to an event, including facts found only outside the object. Pure.

A pod knows its containers. Its Job knows the owner, whether the job may be resubmitted, and whether Kubernetes still
retries it. The node knows whether it was lost. Together they make one job-completion/1.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from service.contracts.advice import RESUBMIT_OF_LABEL
from service.contracts.event import JobCompletion, LogRef, NodeEventIn, Status
from service.contracts.kubernetes_name import KubernetesName
from service.formats import field_reading
from service.formats.field_reading import Skipped
from service.formats.kubernetes import job as kubernetes_job
from service.formats.kubernetes import kubeflow, rayjob
from service.formats.kubernetes import meta as kubernetes_meta
from service.formats.kubernetes import pod as kubernetes_pod
from service.formats.kubernetes.job import retrier
from service.formats.kubernetes.meta import Meta
from service.watch.reflector import Collection

RETRIER = "faultline/retrier"
# The taint manager uses this reason both for nodes that do not answer and for nodes that are merely tainted.
TAINTED = "DeletionByTaintManager"
LINES_MOST = 50
_FINAL = frozenset({"Complete", "Completed", "Failed", "Succeeded"})
_QUEUES = ("kueue.x-k8s.io/queue-name",)


def read(kind: str, obj: Mapping[str, Any], cluster: str, *, deleted: bool = False) -> JobCompletion | Skipped:
    """Return the completion that an object describes, or the reason why it describes none.

    Raises:
        UnreadableRecord: a field is invalid; the error names it.
    """
    found = _READERS[kind](obj, cluster, deleted=deleted)
    if isinstance(found, Skipped):
        return found
    return found.model_copy(update={"resubmit_of": found.labels.get(RESUBMIT_OF_LABEL)})


class _Reader(Protocol):
    def __call__(self, obj: Mapping[str, Any], cluster: str | None, /, *, deleted: bool) -> JobCompletion | Skipped: ...


_READERS: Mapping[str, _Reader] = {
    "Job": kubernetes_job.read,
    "Pod": kubernetes_pod.read,
    "RayJob": rayjob.read,
    **{kind: partial(kubeflow.read, kind=kind) for kind in ("JobSet", "PyTorchJob", "TrainJob")},
}


def ended(kind: str, obj: Mapping[str, Any]) -> bool:
    """Return whether an object has reached a final state."""
    status = field_reading.mapping(obj, "status")
    if kind == "RayJob":
        return status.get("jobDeploymentStatus") in rayjob.ENDED
    if kind != "Pod":
        return not _FINAL.isdisjoint(kubernetes_meta.true_conditions(status))
    return status.get("phase") in {"Succeeded", "Failed"}


def owner_job(meta: Meta) -> str | None:
    """Return the name of the Job that directly owns a pod."""
    return meta.owner[1] if meta.owner is not None and meta.owner[0] == "Job" else None


def owner_uid(obj: Mapping[str, Any]) -> str | None:
    """Return the uid of the Job that directly owns a pod."""
    for reference in field_reading.mappings(field_reading.mapping(obj, "metadata"), "ownerReferences", "metadata."):
        if reference.get("controller") is True and kubernetes_meta.owner_kind(reference) == "Job":
            return field_reading.text(reference, "uid")
    return None


def with_job(event: JobCompletion, pod: Mapping[str, Any], job: Mapping[str, Any]) -> JobCompletion:
    """Add the Job's data to a pod's completion: labels, queue, user, deadline, lineage and automatic retries.

    Raises:
        UnreadableRecord: a field of the Job is invalid; the error names it.
    """
    meta = kubernetes_meta.read_meta(job)
    labels = {**meta.labels, **event.labels}
    if (who := retrier(job, pod)) is not None:
        labels[RETRIER] = who
    limit = field_reading.whole(field_reading.mapping(job, "spec"), "activeDeadlineSeconds", "spec.")
    return event.model_copy(
        update={
            "labels": labels,
            "queue": event.queue or next((labels[key] for key in _QUEUES if key in labels), None),
            "user": event.user or labels.get("user"),
            "team": labels.get("team", event.team),
            "time_limit_s": event.time_limit_s if event.time_limit_s is not None else limit,
            "resubmit_of": event.resubmit_of or labels.get(RESUBMIT_OF_LABEL),
        }
    )


def with_evidence(
    event: JobCompletion, *, lost: bool, lines: Sequence[NodeEventIn] = (), logs: Sequence[LogRef] = ()
) -> JobCompletion:
    """Add the node's state and the logs to a completion.

    Args:
        event: the completion derived from the pod.
        lost: the node is known to be lost, so an eviction by the taint manager was caused by the loss of the node.
        lines: evidence lines about pod and node, oldest first.
        logs: log tails, or why there are none; termination messages that serve as a log are kept.
    """
    status = event.status
    if lost and status is Status.EVICTED and event.reason == TAINTED:
        status = Status.NODE_FAIL
    present = {(ref.stream, ref.tail) for ref in event.logs}
    return event.model_copy(
        update={
            "status": status,
            "node_events": (*event.node_events, *lines[-LINES_MOST:]),
            "logs": (*event.logs, *(ref for ref in logs if (ref.stream, ref.tail) not in present)),
        }
    )


def vanished(kind: str, namespace: str, name: str, uid: str, cluster: str, *, since: str, now: str) -> JobCompletion:
    """Return the completion of a job that ended, or was deleted, while no watcher was running; the result is unknown.

    The status is `cancelled`, which implies neither success nor failure and is in no rate; `reason` has the details.
    """
    return field_reading.build(
        {
            "event_id": f"kubernetes:{kind}:{uid}",
            "cluster": cluster,
            "job_id": str(KubernetesName(namespace, kind, name)),
            "name": name,
            "team": namespace,
            "scheduler": "kubernetes",
            "status": Status.CANCELLED,
            "reason": "UnknownEnd",
            "message": f"it ran at {since} and was gone at {now}: it ended, or was deleted, while nobody watched",
            "ended_at": now,
        }
    )


def owner_collections(namespaces: Sequence[str], labels: str | None) -> list[Collection]:
    """Return the collections to watch: these kinds (of `labels`, in `namespaces` or all), as far as they exist."""
    return [
        Collection(kind, group, plural, namespace, labels, optional=True)
        for namespace in namespaces or (None,)
        for kind, (group, plural) in kubernetes_meta.JOB_OWNERS.items()
    ]


def has_owner(kind: str, meta: Meta) -> bool:
    """Return whether a pod has a controller, or another object an owner of these kinds, whose end counts."""
    return meta.owner is not None if kind == "Pod" else kubernetes_meta.is_under_owner(meta, kind)
