"""KubeRay's RayJob custom resource (ray.io/v1), `ray-operator/apis/ray/v1/rayjob_types.go`."""

from collections.abc import Mapping
from typing import Any

from service.contracts.event import JobCompletion, Status
from service.formats import field_reading
from service.formats.field_reading import Skipped
from service.formats.kubernetes import meta as kubernetes_meta
from service.formats.ray import STATES, reported_exit, split_message

ENDED = frozenset({"Complete", "Failed"})
_REFUSED = "ValidationFailed"  # by KubeRay, before or while a cluster runs


def read(job: Mapping[str, Any], cluster: str | None = None, *, deleted: bool = False) -> JobCompletion | Skipped:
    """Return the event of one RayJob; each retry is a new cluster of the same RayJob.

    `deleted`: a watch has just reported its deletion.

    Raises:
        UnreadableRecord: a field is wrong; the error names it.
    """
    meta = kubernetes_meta.read_meta(job)
    status, spec = field_reading.mapping(job, "status"), field_reading.mapping(job, "spec")
    deployment = field_reading.text(status, "jobDeploymentStatus", "status.")
    state = field_reading.text(status, "jobStatus", "status.")
    reason = field_reading.text(status, "reason", "status.")
    ended_at = field_reading.instant(status, "endTime", "status.")
    is_refused = deployment == _REFUSED and field_reading.text(status, "rayClusterName", "status.") is None
    if deployment in ENDED or is_refused or (deployment is None and state in STATES):
        outcome = _status(deployment, state, reason)
    elif deleted:
        outcome, reason = Status.CANCELLED, "Deleted"
    else:
        return Skipped(f"Kubernetes: a RayJob in {deployment or state or 'no state'} has not ended")
    ended_at = ended_at or kubernetes_meta.last_change(job, meta) or (meta.created_at if is_refused else None)
    if ended_at is None:
        raise field_reading.unreadable("status.endTime", 'a time such as "2026-11-20T03:41:57Z"')
    message, tail = split_message(field_reading.text(status, "message", "status."))
    exit_code, signal = reported_exit(message)
    tries = (field_reading.whole(status, "failed", "status.") or 0) + (
        field_reading.whole(status, "succeeded", "status.") or 0
    )
    values = kubernetes_meta.common(meta, cluster, job) | {
        "event_id": kubernetes_meta.event_id(meta, "RayJob", ended_at),
        **kubernetes_meta.attempt_facts(meta, "RayJob"),
        "attempt": tries - 1 if tries else None,
        "framework": "ray",
        "command": field_reading.text(spec, "entrypoint", "spec."),
        "status": outcome,
        "exit_code": exit_code,
        "signal": signal,
        "reason": reason,
        "message": message,
        "submitted_at": meta.created_at,
        "started_at": field_reading.instant(status, "startTime", "status."),
        "ended_at": ended_at,
        "time_limit_s": field_reading.whole(spec, "activeDeadlineSeconds", "spec."),
        "logs": () if tail is None else ({"stream": "stdout", "tail": tail},),
    }
    return field_reading.build(values)


def _status(deployment: str | None, state: str | None, reason: str | None) -> Status:
    if reason == "DeadlineExceeded":
        return Status.TIMEOUT
    if state in STATES:
        return STATES[state]
    return Status.SUCCEEDED if deployment == "Complete" else Status.FAILED
