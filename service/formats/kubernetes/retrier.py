"""Determines what retries a Kubernetes Job automatically: the Job itself or its controller. No input or output.

https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-backoff-failure-policy
"""

from collections.abc import Mapping
from typing import Any

from service.formats import field_reading
from service.formats.kubernetes import meta as kubernetes_meta

# A pod has this finalizer until its Job has counted its end.
TRACKED = "batch.kubernetes.io/job-tracking"
# Default of Kubernetes.
BACKOFF_LIMIT = 6
# It starts the next run at its scheduled time, independent of the result of this one.
CRON_JOB = "CronJob"


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
