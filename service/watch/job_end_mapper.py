"""What a cluster's objects say of an end → the event, with what only somebody beside the cluster can know. Pure.

A pod knows its containers; its Job knows whose it is, whether it may be resubmitted, and whether it still tries by
itself; the node knows whether it was lost. Put together they are one job-completion/1.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from service.contracts.event import JobCompletion, LogRef, NodeEventIn, Status
from service.formats import field_reading, kubernetes_job, kubernetes_meta, kubernetes_pod, kubernetes_retrier
from service.formats.kubernetes_meta import Meta
from service.formats.read_outcome import Skipped

RESUBMIT_OF = "faultline/resubmit-of"
RETRIER = "faultline/retrier"
# The taint manager's word for a node that does not answer and for one that merely is tainted.
TAINTED = "DeletionByTaintManager"
LINES_MOST = 50
_QUEUES = ("kueue.x-k8s.io/queue-name",)


def read(kind: str, obj: Mapping[str, Any], cluster: str, *, deleted: bool = False) -> JobCompletion | Skipped:
    """The end that an object tells, or why it tells none.

    Raises:
        UnreadableRecord: names the field that is wrong.
    """
    reader = kubernetes_job.read if kind == "Job" else kubernetes_pod.read
    found = reader(obj, cluster, deleted=deleted)
    if isinstance(found, Skipped):
        return found
    return found.model_copy(update={"resubmit_of": found.labels.get(RESUBMIT_OF)})


def ended(kind: str, obj: Mapping[str, Any]) -> bool:
    """Whether a Job or pod has reached its end and stays at it."""
    status = field_reading.mapping(obj, "status")
    if kind == "Job":
        return not {"Complete", "Failed"}.isdisjoint(kubernetes_meta.true_conditions(status))
    return status.get("phase") in {"Succeeded", "Failed"}


def owner_job(meta: Meta) -> str | None:
    """The name of the Job that a pod belongs to directly."""
    return meta.owner[1] if meta.owner is not None and meta.owner[0] == "Job" else None


def owner_uid(obj: Mapping[str, Any]) -> str | None:
    """The uid of the Job that a pod belongs to directly."""
    for reference in field_reading.mappings(field_reading.mapping(obj, "metadata"), "ownerReferences", "metadata."):
        if reference.get("controller") is True and reference.get("kind") == "Job":
            return field_reading.text(reference, "uid")
    return None


def with_job(event: JobCompletion, pod: Mapping[str, Any], job: Mapping[str, Any]) -> JobCompletion:
    """A pod's end with what its Job says: labels, queue, user, deadline, lineage, and who tries again by itself.

    Raises:
        UnreadableRecord: the Job names a field that is wrong.
    """
    meta = kubernetes_meta.read_meta(job)
    labels = {**meta.labels, **event.labels}
    if (who := kubernetes_retrier.retrier(job, pod)) is not None:
        labels[RETRIER] = who
    limit = field_reading.whole(field_reading.mapping(job, "spec"), "activeDeadlineSeconds", "spec.")
    return event.model_copy(
        update={
            "labels": labels,
            "queue": event.queue or next((labels[key] for key in _QUEUES if key in labels), None),
            "user": event.user or labels.get("user"),
            "team": labels.get("team", event.team),
            "time_limit_s": event.time_limit_s if event.time_limit_s is not None else limit,
            "resubmit_of": event.resubmit_of or labels.get(RESUBMIT_OF),
        }
    )


def with_evidence(
    event: JobCompletion, *, lost: bool, lines: Sequence[NodeEventIn] = (), logs: Sequence[LogRef] = ()
) -> JobCompletion:
    """An end with the node's word for it, and the logs.

    Args:
        event: as the pod told it.
        lost: its node is known to be lost: what the taint manager calls an eviction was the node's end.
        lines: what was said of pod and node, oldest first.
        logs: tails, or why there are none; termination messages that are a log stay.
    """
    status = event.status
    if lost and status is Status.EVICTED and event.reason == TAINTED:
        status = Status.NODE_FAIL
    told = {(ref.stream, ref.tail) for ref in event.logs}
    return event.model_copy(
        update={
            "status": status,
            "node_events": (*event.node_events, *lines[-LINES_MOST:]),
            "logs": (*event.logs, *(ref for ref in logs if (ref.stream, ref.tail) not in told)),
        }
    )


def vanished(kind: str, namespace: str, name: str, uid: str, cluster: str, *, since: str, now: str) -> JobCompletion:
    """The event of a job that ended, or was deleted, while nobody watched: how is not known.

    `cancelled` is the status that says nothing about success or failure and is in no rate; `reason` says the rest.
    """
    return field_reading.build(
        {
            "event_id": f"kubernetes:{kind}:{uid}",
            "cluster": cluster,
            "job_id": f"{namespace}/{kind}/{name}",
            "name": name,
            "team": namespace,
            "scheduler": "kubernetes",
            "status": Status.CANCELLED,
            "reason": "UnknownEnd",
            "message": f"it ran at {since} and was gone at {now}: it ended, or was deleted, while nobody watched",
            "ended_at": now,
        }
    )
