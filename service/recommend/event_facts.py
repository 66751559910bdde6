"""The facts that the event itself contains; the other facts come from the store."""

from datetime import datetime
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from service.contracts.advice import OPT_IN_LABEL
from service.contracts.event import JobCompletion
from service.contracts.kubernetes_name import kubernetes_name
from service.recommend.facts import Facts, KnownCheckpoint, OptIn, OptInMode
from service.recommend.policy import Policy
from service.recommend.policy_settings import Retrier

_BY_LABEL: dict[str, OptInMode] = {"auto": "auto", "advise": "advise", "never": "never"}
_NO_VALUES = frozenset({"", "0", "false", "no"})
# Controllers that restart a pod whatever its result. The end of a Job is reported by the Job, not by its pods.
_RESTARTING = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Workflow"})


def opt_in(labels: dict[str, str], policy: Policy, source: str | None = None) -> OptIn:
    """The job's consent: its own label first (where the policy allows labels), otherwise the policy's default.

    A label with a value other than auto, advise or never is treated as advice only. The label auto counts only if the
    policy trusts `source`, the place that the event came from.
    """
    label = labels.get(OPT_IN_LABEL)
    if label is not None:
        mode = _BY_LABEL.get(label.strip().lower())
        if mode is None:
            return OptIn("advise", f"label {OPT_IN_LABEL} has the unknown value {label[:40]!r}")
        if mode != "auto" or (policy.opt_in.labels and _trusted(source, policy)):
            return OptIn(mode, f"label {OPT_IN_LABEL}={mode}", by_label=True)
    return _by_policy(policy.opt_in.default)


def _trusted(source: str | None, policy: Policy) -> bool:
    """Whether labels of events from this source may opt in; events of earlier releases have no source."""
    return any(fnmatchcase(source or "unknown", pattern) for pattern in policy.opt_in.label_sources)


@cache
def _by_policy(mode: OptInMode) -> OptIn:
    return OptIn(mode, "policy" if mode != "shadow" else "nobody opted in")


def _fits(row: Retrier, name: str, value: str) -> bool:
    named = name.startswith(row.label[:-1]) if row.label.endswith("*") else name == row.label
    return named and (value == row.value if row.value is not None else value.strip().lower() not in _NO_VALUES)


def retrier(event: JobCompletion, policy: Policy) -> str | None:
    """What else retries the job, according to the event; None if nothing is known."""
    for row in policy.retrier if event.labels else ():
        if any(_fits(row, name, value) for name, value in event.labels.items()):
            return row.who
    job = kubernetes_name(event.job_id)
    if job is None:
        return None
    if event.scheduler == "kubernetes" and job.kind in _RESTARTING:
        return f"the {job.kind} {job.name}"
    if event.pod is not None and job.kind not in {"Pod", "Node"}:
        return f"the {job.kind} {job.name}, of which this was one pod"
    return None


def array_task(event: JobCompletion) -> bool:
    """Whether the job is one task of a Slurm array (`123_4`)."""
    whole, _, task = event.job_id.partition("_")
    return whole.isdecimal() and task.isdecimal()


def facts_of(event: JobCompletion, now: datetime, policy: Policy, **stored: Any) -> Facts:
    """The facts of the event, together with further facts by name (`stored`).

    `policy` is the effective policy for the event's cluster, queue and team.
    """
    known = event.checkpoint
    return Facts(
        now=now,
        opt_in=opt_in(event.labels, policy, event.intake_source),
        retrier=retrier(event, policy),
        checkpoint=None if known is None else KnownCheckpoint(known.uri, known.step, known.at),
        memory_requested=event.requested.memory_bytes if event.requested is not None else None,
        array_task=array_task(event),
        queue_wait_s=None
        if event.submitted_at is None or event.started_at is None
        else max(0.0, (event.started_at - event.submitted_at).total_seconds()),
        **stored,
    )


def without_history(event: JobCompletion, now: datetime, policy: Policy) -> Facts:
    """The facts of one event without history and with an assumed opt-in."""
    known = facts_of(event, now, policy)
    return Facts(
        now=now,
        opt_in=OptIn("auto", "assumed"),
        checkpoint=known.checkpoint,
        memory_requested=known.memory_requested,
        array_task=known.array_task,
        queue_wait_s=known.queue_wait_s,
    )
