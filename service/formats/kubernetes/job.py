"""A Kubernetes Job (batch/v1) that has ended: condition Complete or Failed, suspended midway, or deleted.

A Job that a controller such as a JobSet owns is an attempt of the controller's job.
Reasons are the constants of the API: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/.
"""

from collections.abc import Mapping
from typing import Any

from service.contracts.event import JobCompletion
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
