"""Who starts a Kubernetes Job's work again by itself: the Job while it may, or whatever controls it. Pure.

https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-backoff-failure-policy
"""

from collections.abc import Mapping
from typing import Any

from service.formats import field_reading, kubernetes_meta

# A pod bears it until its Job has counted its end.
TRACKED = "batch.kubernetes.io/job-tracking"
# What Kubernetes takes where nothing is said.
BACKOFF_LIMIT = 6
# A CronJob starts the next run at its time, whatever became of this one.
NO_RETRIERS = frozenset({"CronJob"})


def retrier(job: Mapping[str, Any], pod: Mapping[str, Any] | None = None) -> str | None:
    """Who starts this work again by itself, in words; None: nobody does any more.

    A Job whose backoffLimit is not used up, counting the end of `pod` where the Job has not counted it yet; and
    whatever controls the Job. https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-backoff-failure-policy
    """
    meta = kubernetes_meta.read_meta(job)
    if meta.owner is not None and meta.owner[0] != "CronJob":
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
    limit = 6 if limit is None else limit
    if failed > limit:
        return None
    return f"the Job's own backoffLimit: {failed} of {limit} retries are used"


def _index_retrier(spec: Mapping[str, Any], pod: Mapping[str, Any] | None) -> str | None:
    limit = field_reading.whole(spec, "backoffLimitPerIndex", "spec.") or 0
    tried = kubernetes_meta.retry_index(kubernetes_meta.read_meta(pod)) if pod is not None else None
    if pod is not None and (tried or 0) >= limit:
        return None
    return f"the Job's own backoffLimitPerIndex: {tried or 0} of {limit} retries are used"
