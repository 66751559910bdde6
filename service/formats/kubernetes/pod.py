"""A Kubernetes Pod that has ended.

A pod of a Job or another controller is an attempt of that job: `job_id` names the controller, `pod` the pod. The reason
for the end is taken from the DisruptionTarget condition (a Job reports preemption, eviction and a code bug alike as
BackoffLimitExceeded), else from the pod's reason, else from its containers.
Reasons: https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from service.contracts.event import JobCompletion, Status
from service.formats import field_reading
from service.formats.field_reading import Skipped
from service.formats.kubernetes import containers as kubernetes_containers
from service.formats.kubernetes import meta as kubernetes_meta
from service.formats.kubernetes.containers import ContainerEnd
from service.formats.kubernetes.meta import Condition

DISRUPTIONS = {
    "PreemptionByScheduler": Status.PREEMPTED,
    "DeletionByPodGC": Status.NODE_FAIL,  # its node was removed
}
# The kubelet ended the pod: its node is short of a resource or shuts down, or it made room for a critical pod.
BY_KUBELET, PREEMPTING = "TerminationByKubelet", "Preempting"
POD_REASONS = {
    "Evicted": Status.EVICTED,
    "NodeShutdown": Status.EVICTED,
    "Terminated": Status.EVICTED,
    PREEMPTING: Status.PREEMPTED,
    "DeadlineExceeded": Status.TIMEOUT,
    "NodeLost": Status.NODE_FAIL,
}


def read(pod: Mapping[str, Any], cluster: str | None = None, *, deleted: bool = False) -> JobCompletion | Skipped:
    """Return the event of one pod. `deleted`: a watch has just reported its deletion.

    Raises:
        UnreadableRecord: a field is wrong; the error names it.
    """
    meta = kubernetes_meta.read_meta(pod)
    status = field_reading.mapping(pod, "status")
    spec = field_reading.mapping(pod, "spec")
    phase = field_reading.text(status, "phase", "status.")
    conditions = kubernetes_meta.true_conditions(status)
    disruption = conditions.get("DisruptionTarget")
    stopped = conditions.get("TerminationTarget")  # set by Kueue
    if phase not in {"Succeeded", "Failed"}:
        if not deleted:
            return Skipped(f"Kubernetes: pod phase {phase} is not an end")
        if disruption is None and meta.owner is not None:
            return Skipped("Kubernetes: a pod deleted by its controller, whose own end counts")
    containers = kubernetes_containers.read(status)
    failed = None if phase == "Succeeded" else kubernetes_containers.first_failed(containers)
    outcome = _status(phase, field_reading.text(status, "reason", "status."), disruption, stopped, failed)
    started_at = field_reading.instant(status, "startTime", "status.") or kubernetes_containers.started_at(containers)
    ended_at = (
        _ended_at(containers, disruption)
        or _last_known(containers, status, kubernetes_meta.last_change(pod, meta))
        or (started_at if phase == "Failed" and status.get("reason") and not containers else None)  # not admitted
    )
    if ended_at is None:
        raise field_reading.unreadable(
            "status.containerStatuses", "a terminated state with finishedAt, or a condition's time"
        )
    node = field_reading.text(spec, "nodeName", "spec.")
    cause = disruption or stopped
    message = kubernetes_containers.words(
        [cause.message if cause else None, field_reading.text(status, "message", "status.")], containers
    )
    code, signal = (failed.exit_code, failed.signal) if failed else (0 if outcome is Status.SUCCEEDED else None, None)
    values = kubernetes_meta.common(meta, cluster, pod) | {
        "event_id": kubernetes_meta.event_id(meta, "Pod", started_at, ended_at),
        **kubernetes_meta.attempt_facts(meta, "Pod"),
        "attempt": kubernetes_meta.retry_index(meta),
        "status": outcome,
        "exit_code": code,
        "signal": signal,
        "reason": _reason(cause, field_reading.text(status, "reason", "status."), failed, containers),
        "message": message,
        "submitted_at": meta.created_at,
        "started_at": started_at,
        "ended_at": ended_at,
        "time_limit_s": field_reading.whole(spec, "activeDeadlineSeconds", "spec."),
        "restart_count": sum(one.restarts for one in containers) if containers else None,
        "nodes": (node,) if node else (),
        "logs": kubernetes_containers.logs(containers, rank=kubernetes_meta.completion_index(meta), node=node),
        **kubernetes_meta.pod_spec_facts(spec, "spec."),
    }
    return field_reading.build(values)


def _status(
    phase: str | None,
    reason: str | None,
    disruption: Condition | None,
    stopped: Condition | None,
    failed: ContainerEnd | None,
) -> Status:
    if phase == "Succeeded":
        return Status.SUCCEEDED
    if disruption is not None:
        return _of_disruption(disruption, reason)
    if stopped is not None:
        return Status.PREEMPTED if "Preempt" in (stopped.reason or "") else Status.CANCELLED
    if reason in POD_REASONS:
        return POD_REASONS[reason]
    if failed is not None and failed.reason == "OOMKilled":
        return Status.OUT_OF_MEMORY
    return Status.FAILED if phase == "Failed" else Status.CANCELLED


def _of_disruption(disruption: Condition, reason: str | None) -> Status:
    """The status of a disrupted pod. The kubelet's own reason tells a preemption by it from other evictions."""
    if disruption.reason == BY_KUBELET and reason == PREEMPTING:
        return Status.PREEMPTED
    return DISRUPTIONS.get(disruption.reason or "", Status.EVICTED)


def _reason(
    cause: Condition | None, pod_reason: str | None, failed: ContainerEnd | None, containers: list[ContainerEnd]
) -> str | None:
    waiting = next((one.waiting for one in containers if one.waiting), None)
    own = failed.reason if failed is not None and failed.reason != "Error" else None
    return (cause.reason if cause else None) or pod_reason or own or waiting or (failed.reason if failed else None)


def _ended_at(containers: list[ContainerEnd], disruption: Condition | None) -> datetime | None:
    """Return the end of the last container, else the time of the disruption; None if both are unknown.

    Containers of a lost node, and of a pod that is deleted by force, are never reported as ended. The ends of init
    containers are those of the pod's start then.
    """
    ends = _ends(containers)
    all_ended = all(one.has_ended for one in containers if not one.init)
    if ends and (all_ended or any(one.init and one.has_ended and one.exit_code for one in containers)):
        return max(ends)
    return max([*ends, disruption.at]) if disruption is not None and disruption.at is not None else None


def _last_known(
    containers: list[ContainerEnd], status: Mapping[str, Any], last_change: datetime | None
) -> datetime | None:
    """Return the latest time that the pod names; its true conditions alone, such as Ready, may be those of its start.

    A condition that is no longer true, such as Ready, changed at the end.
    """
    known = [*_ends(containers), last_change, *kubernetes_meta.condition_times(status)]
    return max((at for at in known if at is not None), default=None)


def _ends(containers: list[ContainerEnd]) -> list[datetime]:
    return [one.ended_at for one in containers if one.ended_at is not None and not one.earlier]
