"""A Kubernetes Job (batch/v1) that has ended: condition Complete or Failed, suspended midway, or deleted.

A Job that a controller such as a JobSet owns is an attempt of the controller's job.
Reasons are the constants of the API: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/.
"""

from collections.abc import Mapping
from typing import Any

from service.contracts.event import JobCompletion, Status
from service.formats import field_reading
from service.formats.field_reading import Skipped
from service.formats.kubernetes import meta as kubernetes_meta


def read(job: Mapping[str, Any], cluster: str | None = None, *, deleted: bool = False) -> JobCompletion | Skipped:
    """Return the event of one Job. `deleted`: a watch has just reported its deletion.

    Raises:
        UnreadableRecord: a field is wrong; the error names it.
    """
    meta = kubernetes_meta.read_meta(job)
    status, spec = field_reading.mapping(job, "status"), field_reading.mapping(job, "spec")
    conditions = kubernetes_meta.true_conditions(status)
    identity: tuple[Any, ...] = ()
    if (failed := conditions.get("Failed")) is not None:
        outcome = Status.TIMEOUT if failed.reason == "DeadlineExceeded" else Status.FAILED
        cause, ended_at = failed, failed.at
    elif (complete := conditions.get("Complete")) is not None:
        outcome, cause = Status.SUCCEEDED, complete
        ended_at = field_reading.instant(status, "completionTime", "status.") or complete.at
    elif deleted:
        outcome, cause, ended_at = Status.CANCELLED, None, kubernetes_meta.last_change(job, meta)
    elif kubernetes_meta.stopped_midway(meta, suspended := conditions.get("Suspended")) and suspended is not None:
        outcome, cause, ended_at = Status.CANCELLED, suspended, suspended.at
        identity = ("suspended", ended_at)  # it may be resumed and end again
    else:
        return Skipped("Kubernetes: a Job that has not ended")
    if ended_at is None:
        raise field_reading.unreadable(
            "status.conditions", "a time (lastTransitionTime) on the condition that ended the Job"
        )
    started_at = field_reading.instant(status, "startTime", "status.")
    template = field_reading.mapping(field_reading.mapping(spec, "template", "spec."), "spec", "spec.template.")
    pods = field_reading.whole(spec, "parallelism", "spec.") or 1
    own_id = kubernetes_meta.event_id(meta, "Job", started_at, ended_at)
    values = kubernetes_meta.common(meta, cluster, job) | {
        "event_id": ":".join([own_id, *(str(part) for part in identity)]),
        **kubernetes_meta.attempt_facts(meta, "Job"),
        "attempt": kubernetes_meta.retry_index(meta),
        "status": outcome,
        "reason": cause.reason if cause else "Deleted",
        "message": cause.message if cause else None,
        "submitted_at": meta.created_at,
        "started_at": started_at,
        "ended_at": ended_at,
        "time_limit_s": field_reading.whole(spec, "activeDeadlineSeconds", "spec."),
        **kubernetes_meta.pod_spec_facts(template, "spec.template.spec.", pods=pods),
    }
    return field_reading.build(values)
