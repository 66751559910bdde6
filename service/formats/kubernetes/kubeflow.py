"""Kubeflow's training jobs: PyTorchJob (training-operator v1) and TrainJob (trainer v2).

Conditions as in `pkg/apis/kubeflow.org/v1/common_types.go` and trainer.kubeflow.org/v1alpha1; a TrainJob's Failed
reason and message are those of its JobSet.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.contracts.event import JobCompletion, Status
from service.formats import field_reading
from service.formats.kubernetes import meta as kubernetes_meta
from service.formats.read_outcome import Skipped

_GOOD = ("Succeeded", "Complete")


@dataclass(frozen=True, slots=True)
class _Shape:
    """The size of the job according to its spec."""

    framework: str | None
    facts: Mapping[str, Any]
    time_limit_s: int | None


def read(
    job: Mapping[str, Any], cluster: str | None = None, *, kind: str, deleted: bool = False
) -> JobCompletion | Skipped:
    """Return the event of one PyTorchJob or TrainJob. `deleted`: a watch has just reported its deletion.

    Raises:
        UnreadableRecord: a field is wrong; the error names it.
    """
    meta = kubernetes_meta.read_meta(job)
    status, spec = field_reading.mapping(job, "status"), field_reading.mapping(job, "spec")
    conditions = kubernetes_meta.true_conditions(status)
    good = next((conditions[name] for name in _GOOD if name in conditions), None)
    suspended = conditions.get("Suspended")
    midway = ""
    if (failed := conditions.get("Failed")) is not None:
        outcome = Status.TIMEOUT if failed.reason == "DeadlineExceeded" else Status.FAILED
        cause, ended_at = failed, failed.at
    elif good is not None:
        outcome, cause = Status.SUCCEEDED, good
        ended_at = good.at
    elif deleted:
        outcome, cause, ended_at = Status.CANCELLED, None, kubernetes_meta.last_change(job, meta)
    elif suspended is not None and kubernetes_meta.stopped_midway(meta, suspended):
        outcome, cause, ended_at = Status.CANCELLED, suspended, suspended.at
        midway = f":suspended:{ended_at}"
    else:
        return Skipped(f"Kubernetes: a {kind} that has not ended")
    ended_at = field_reading.instant(status, "completionTime", "status.") or ended_at
    if ended_at is None:
        raise field_reading.unreadable("status.conditions", f"a time on the condition that ended the {kind}")
    shape = _pytorch_job(spec) if kind == "PyTorchJob" else _train_job(spec)
    started_at = field_reading.instant(status, "startTime", "status.") or meta.created_at
    values = kubernetes_meta.common(meta, cluster, job) | {
        "event_id": kubernetes_meta.event_id(meta, kind, ended_at) + midway,
        "job_id": meta.full_name(kind),
        "framework": shape.framework,
        "status": outcome,
        "reason": cause.reason if cause else "Deleted",
        "message": cause.message if cause else None,
        "submitted_at": meta.created_at,
        "started_at": started_at,
        "ended_at": ended_at,
        "time_limit_s": shape.time_limit_s,
        "restart_count": field_reading.whole(status, "restarts", "status."),
        **shape.facts,
    }
    return field_reading.build(values)


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
