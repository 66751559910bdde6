"""A Kubernetes Job (batch/v1): its end (Complete, Failed, suspended midway or deleted), and what retries it.

A Job that a controller such as a JobSet owns is an attempt of the controller's job.
Reasons are the constants of the API: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/.
"""

from collections.abc import Mapping
from typing import Any

from service.contracts.event import JobCompletion
from service.formats import field_reading
from service.formats.field_reading import Skipped
from service.formats.kubernetes import meta as kubernetes_meta

# A pod has this finalizer until its Job has counted its end.
TRACKED = "batch.kubernetes.io/job-tracking"
# Default of Kubernetes.
BACKOFF_LIMIT = 6
# It starts the next run at its scheduled time, independent of the result of this one.
CRON_JOB = "CronJob"


def read(job: Mapping[str, Any], cluster: str | None = None, *, deleted: bool = False) -> JobCompletion | Skipped:
    """Return the event of one Job. `deleted`: a watch has just reported its deletion.

    Raises:
        UnreadableRecord: a field is wrong; the error names it.
    """
    meta = kubernetes_meta.read_meta(job)
    status, spec = field_reading.mapping(job, "status"), field_reading.mapping(job, "spec")
    end = kubernetes_meta.end_of(job, meta, "Job", deleted=deleted)
    if end is None:
        return Skipped("Kubernetes: a Job that has not ended")
    started_at = field_reading.instant(status, "startTime", "status.")
    template = field_reading.mapping(field_reading.mapping(spec, "template", "spec."), "spec", "spec.template.")
    pods = field_reading.whole(spec, "parallelism", "spec.") or 1
    values = kubernetes_meta.common(meta, cluster, job) | {
        "event_id": kubernetes_meta.event_id(meta, "Job", started_at, end.at) + end.id_suffix,
        **kubernetes_meta.attempt_facts(meta, "Job"),
        "attempt": kubernetes_meta.retry_index(meta),
        **end.facts(),
        "submitted_at": meta.created_at,
        "started_at": started_at,
        "time_limit_s": field_reading.whole(spec, "activeDeadlineSeconds", "spec."),
        **kubernetes_meta.pod_spec_facts(template, "spec.template.spec.", pods=pods),
    }
    return field_reading.build(values)


def retrier(job: Mapping[str, Any], pod: Mapping[str, Any] | None = None) -> str | None:
    """Describe what retries this work automatically; None if nothing does.

    A Job retries until its backoffLimit is reached, including the end of `pod` if the Job has not counted it yet. The
    controller of a Job may retry it too.
    https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-backoff-failure-policy
    """
    meta = kubernetes_meta.read_meta(job)
    if meta.owner is not None and meta.owner[0] != CRON_JOB:
        return f"{meta.owner[0]} {meta.owner[1]} controls this Job"
    spec, status = field_reading.mapping(job, "spec"), field_reading.mapping(job, "status")
    conditions = kubernetes_meta.true_conditions(status)
    if not {"Complete", "Failed", "FailureTarget"}.isdisjoint(conditions):
        return None
    if field_reading.whole(spec, "backoffLimitPerIndex", "spec.") is not None:
        return _index_retrier(spec, pod)
    failed = field_reading.whole(status, "failed", "status.") or 0
    if pod is not None and TRACKED in (field_reading.mapping(pod, "metadata").get("finalizers") or ()):
        failed += 1
    limit = field_reading.whole(spec, "backoffLimit", "spec.")
    limit = BACKOFF_LIMIT if limit is None else limit
    if failed > limit:
        return None
    return f"the Job's own backoffLimit: {failed} of {limit} retries are used"


def _index_retrier(spec: Mapping[str, Any], pod: Mapping[str, Any] | None) -> str | None:
    limit = field_reading.whole(spec, "backoffLimitPerIndex", "spec.") or 0
    tried = kubernetes_meta.retry_index(kubernetes_meta.read_meta(pod)) if pod is not None else None
    if pod is not None and (tried or 0) >= limit:
        return None
    return f"the Job's own backoffLimitPerIndex: {tried or 0} of {limit} retries are used"
