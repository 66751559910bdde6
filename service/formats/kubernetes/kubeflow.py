"""Kubeflow's training jobs, PyTorchJob (training-operator v1) and TrainJob (trainer v2), and the JobSet of the latter.

Conditions as in `pkg/apis/kubeflow.org/v1/common_types.go`, trainer.kubeflow.org/v1alpha1 and jobset.x-k8s.io/v1alpha2;
a TrainJob's Failed reason and message are those of its JobSet.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from service.contracts.event import JobCompletion
from service.formats import field_reading
from service.formats.field_reading import Skipped
from service.formats.kubernetes import meta as kubernetes_meta


@dataclass(frozen=True, slots=True)
class _Shape:
    """The size of the job according to its spec."""

    framework: str | None
    facts: Mapping[str, Any]
    time_limit_s: int | None


def read(
    job: Mapping[str, Any], cluster: str | None = None, *, kind: str, deleted: bool = False
) -> JobCompletion | Skipped:
    """Return the event of one PyTorchJob, TrainJob or JobSet. `deleted`: a watch has just reported its deletion.

    Raises:
        UnreadableRecord: a field is wrong; the error names it.
    """
    meta = kubernetes_meta.read_meta(job)
    status, spec = field_reading.mapping(job, "status"), field_reading.mapping(job, "spec")
    end = kubernetes_meta.end_of(job, meta, kind, deleted=deleted)
    if end is None:
        return Skipped(f"Kubernetes: a {kind} that has not ended")
    shape = _SHAPES[kind](spec)
    started_at = field_reading.instant(status, "startTime", "status.") or meta.created_at
    values = kubernetes_meta.common(meta, cluster, job) | {
        "event_id": kubernetes_meta.event_id(meta, kind, end.at) + end.id_suffix,
        **kubernetes_meta.attempt_facts(meta, kind),
        "framework": shape.framework,
        **end.facts(),
        "submitted_at": meta.created_at,
        "started_at": started_at,
        "time_limit_s": shape.time_limit_s,
        "restart_count": field_reading.whole(status, "restarts", "status."),
        **shape.facts,
    }
    return field_reading.build(values)


def _job_set(spec: Mapping[str, Any]) -> _Shape:
    """Read the replicated Jobs: image and command of the last one, after initializers; resources of all."""
    facts: dict[str, Any] = {}
    gpus = 0
    for index, replicated in enumerate(field_reading.mappings(spec, "replicatedJobs", "spec.")):
        place = f"spec.replicatedJobs[{index}]."
        template = field_reading.mapping(replicated, "template", place)
        job = field_reading.mapping(template, "spec", f"{place}template.")
        inner = f"{place}template.spec."
        pod = field_reading.mapping(field_reading.mapping(job, "template", inner), "spec", f"{inner}template.")
        replicas = field_reading.whole(replicated, "replicas", place)
        pods = (1 if replicas is None else replicas) * (field_reading.whole(job, "parallelism", inner) or 1)
        found = kubernetes_meta.pod_spec_facts(pod, f"{inner}template.spec.", pods=pods)
        gpus += found.pop("gpus", None) or 0
        found.pop("requested", None)
        facts |= {key: value for key, value in found.items() if value is not None}
    return _Shape(None, {**facts, "gpus": gpus or None}, None)


def _pytorch_job(spec: Mapping[str, Any]) -> _Shape:
    """Read the replicas by role: image and command of the first role, resources of all roles."""
    facts: dict[str, Any] = {}
    gpus = 0
    replicas = field_reading.mapping(spec, "pytorchReplicaSpecs", "spec.")
    for role in sorted(replicas):  # Master, Worker
        place = f"spec.pytorchReplicaSpecs.{role}."
        replica = field_reading.mapping(replicas, role, "spec.pytorchReplicaSpecs.")
        template = field_reading.mapping(field_reading.mapping(replica, "template", place), "spec", f"{place}template.")
        count = field_reading.whole(replica, "replicas", place)
        found = kubernetes_meta.pod_spec_facts(template, f"{place}template.spec.", pods=1 if count is None else count)
        gpus += found.pop("gpus", None) or 0
        found.pop("requested", None)
        facts = {**found, **{key: value for key, value in facts.items() if value is not None}}
    policy = field_reading.mapping(spec, "runPolicy", "spec.")
    limit = field_reading.whole(policy, "activeDeadlineSeconds", "spec.runPolicy.")
    return _Shape("pytorch", {**facts, "gpus": gpus or None}, limit)


def _train_job(spec: Mapping[str, Any]) -> _Shape:
    runtime = field_reading.text(field_reading.mapping(spec, "runtimeRef", "spec."), "name", "spec.runtimeRef.") or ""
    trainer = field_reading.mapping(spec, "trainer", "spec.")
    nodes = field_reading.whole(trainer, "numNodes", "spec.trainer.") or 1
    facts = dict(
        kubernetes_meta.pod_spec_facts(
            {"containers": [{**trainer, "resources": trainer.get("resourcesPerNode")}]} if trainer else {},
            "spec.trainer.",
            pods=nodes,
        )
    )
    framework = next((name for name in ("torch", "deepspeed", "jax", "mpi") if name in runtime), None)
    limit = field_reading.whole(spec, "activeDeadlineSeconds", "spec.")
    return _Shape("pytorch" if framework == "torch" else framework, facts, limit)


_SHAPES: Mapping[str, Callable[[Mapping[str, Any]], _Shape]] = {
    "PyTorchJob": _pytorch_job,
    "TrainJob": _train_job,
    "JobSet": _job_set,
}
