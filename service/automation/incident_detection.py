"""Assigns failures to incidents: many jobs of several users over one shared resource, within a window, are one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from service.automation import notifications
from service.automation.job_ends import DiagnosedAttempt
from service.automation.time_limits import INCIDENT_FAILURE_AGE
from service.db.session import UnitOfWork
from service.incidents.records import Incident, NewIncident, NewSignal, Signal
from service.incidents.repository.incident_signals import MOST_SIGNALS
from service.incidents.shared_resources import RESOURCE_ORDER, SharedResource
from service.recommend.incident_rules import RecentFailure, SharedFailures, detect_incidents
from service.recommend.policy import Policy

# A request that is held for one of these reasons is held by the incident instead.
_REPLACED_HOLDS = frozenset({"repair", "rate", "window", "storm"})
_RANK = {kind: rank for rank, kind in enumerate(RESOURCE_ORDER)}
_BEFORE_NODES = _RANK["node"] - 1
# So many failing nodes of one switch or rack are its failure (judgement: two may fail by chance).
_NODES = 3


@dataclass(slots=True)
class IncidentAssignment:
    """The open incident of each attempt that belongs to one, by attempt id; `opened`: those that this batch opened."""

    by_attempt: dict[int, Incident] = field(default_factory=dict)
    opened: list[Incident] = field(default_factory=list)


def assign_incidents(
    work: UnitOfWork,
    attempts: Sequence[DiagnosedAttempt],
    resources: Mapping[int, tuple[SharedResource, ...]],
    policy: Policy,
    now: datetime,
    *,
    revised: bool = False,
) -> IncidentAssignment:
    """Store the shared resources of these failures, open new incidents, and assign each failure to its incident.

    Args:
        work: the open transaction.
        attempts: the diagnosed attempts of the batch.
        resources: the shared resources of each attempt, by attempt id.
        policy: the policy in force.
        now: the current time.
        revised: the verdicts were revised, so that some of their signals may be stored already.
    """
    recent = [one for one in attempts if resources[one.attempt_id] and now - one.event.ended_at <= INCIDENT_FAILURE_AGE]
    if not recent:
        return IncidentAssignment()
    new = [one for one in recent if revised or one.attempt_id == one.failure_id]
    work.incident_signals.add(
        [
            NewSignal(resource.key, one.failure_id, min(one.event.ended_at, now), one.event.user)
            for one in new
            for resource in resources[one.attempt_id]
        ],
        again=revised,
    )
    open_incidents = {incident.key: incident for incident in work.incidents.opened()}
    assignment = IncidentAssignment()
    unassigned: list[DiagnosedAttempt] = []
    for one in recent:
        keys = (resource.key for resource in resources[one.attempt_id])
        incident = next((open_incidents[key] for key in keys if key in open_incidents), None)
        if incident is None:
            unassigned.append(one)
        else:
            assignment.by_attempt[one.attempt_id] = incident
    earlier = _open_incidents(work, unassigned, resources, policy, now, assignment) if unassigned else {}
    _store_assignment(work, recent, assignment, earlier, now)
    return assignment


def _open_incidents(
    work: UnitOfWork,
    unassigned: Sequence[DiagnosedAttempt],
    resources: Mapping[int, tuple[SharedResource, ...]],
    policy: Policy,
    now: datetime,
    assignment: IncidentAssignment,
) -> dict[int, list[Signal]]:
    """Open the incidents that these failures complete; the counted failures of each, by incident id."""
    by_resource: dict[SharedResource, list[DiagnosedAttempt]] = {}
    for one in unassigned:
        for resource in resources[one.attempt_id]:
            by_resource.setdefault(resource, []).append(one)
    signals = _recent_signals(work, by_resource, policy, now)
    earlier: dict[int, list[Signal]] = {}
    for resource, members in _detected(work, signals, policy):
        attempts = by_resource[resource]
        settings = policy.effective(cluster=resource.cluster).incident
        causes = [one.verdict.cause for one in attempts]
        incident, created = work.incidents.open(
            NewIncident(
                key=resource.key,
                kind=resource.kind,
                value=resource.value,
                cluster=resource.cluster,
                cause=max(sorted(set(causes)), key=causes.count),
                title=_title(resource, attempts),
                by="policy",
                probe_at=now + timedelta(minutes=settings.probe_minutes),
            )
        )
        if created:
            assignment.opened.append(incident)
        earlier[incident.id] = members
        for one in attempts:
            assignment.by_attempt.setdefault(one.attempt_id, incident)
    return earlier


def _recent_signals(
    work: UnitOfWork,
    by_resource: Mapping[SharedResource, Sequence[DiagnosedAttempt]],
    policy: Policy,
    now: datetime,
) -> dict[SharedResource, list[Signal]]:
    """The signals within each resource's window; resources with too few for an incident are left out."""
    settings = {resource: policy.effective(cluster=resource.cluster).incident for resource in by_resource}
    since = {
        resource.key: min(max(one.event.ended_at for one in attempts), now)
        - timedelta(minutes=settings[resource].window_minutes)
        for resource, attempts in by_resource.items()
    }
    latest = work.incident_signals.latest(since)
    for resource, attempts in by_resource.items():
        latest[resource.key] += _not_among(latest[resource.key], attempts, since[resource.key], now)
    return {
        resource: latest[resource.key]
        for resource, limits in settings.items()
        if len(latest[resource.key]) >= limits.jobs
        and len({signal.user for signal in latest[resource.key]}) >= limits.users
    }


def _not_among(
    read: Sequence[Signal], attempts: Sequence[DiagnosedAttempt], since: datetime, now: datetime
) -> list[Signal]:
    """The signals of this batch that the limit of the query left out.

    Without them, these failures would open further incidents over their racks, nodes and messages.
    """
    if len(read) < MOST_SIGNALS:
        return []
    ends = {one.failure_id: one.event for one in attempts if min(one.event.ended_at, now) >= since}
    for one in read:
        ends.pop(one.failure_id, None)
    return [Signal(failure_id, min(event.ended_at, now), event.user or "") for failure_id, event in ends.items()]


def _detected(
    work: UnitOfWork, signals: Mapping[SharedResource, Sequence[Signal]], policy: Policy
) -> list[tuple[SharedResource, list[Signal]]]:
    """The resources over which an incident has to be opened, with the signals of its failures."""
    if not signals:
        return []
    failure_ids = {signal.failure_id for members in signals.values() for signal in members}
    lineages = work.lineages.of_failures(failure_ids)
    shared = _places_of_several_nodes(signals)
    ordered = sorted(signals, key=lambda one: (_BEFORE_NODES if one in shared else _RANK[one.kind], *_order(one)))
    candidates = [
        SharedFailures(
            resource.key,
            policy.effective(cluster=resource.cluster).incident,
            [
                RecentFailure(signal.failure_id, signal.user, lineages.get(signal.failure_id, str(signal.failure_id)))
                for signal in signals[resource]
            ],
        )
        for resource in ordered
    ]
    found = {
        one.key: set(one.failure_ids)
        for one in detect_incidents(candidates, work.incidents.open_incident_of(failure_ids))
    }
    # The same order in every transaction: two that open the same incidents wait for each other without a deadlock.
    return [
        (resource, [signal for signal in signals[resource] if signal.failure_id in found[resource.key]])
        for resource in sorted(signals, key=_order)
        if resource.key in found
    ]


def _order(resource: SharedResource) -> tuple[int, str]:
    return _RANK[resource.kind], resource.key


def _places_of_several_nodes(signals: Mapping[SharedResource, Sequence[Signal]]) -> set[SharedResource]:
    """The switches and racks that fail several nodes, each of which alone would be an incident."""
    members = {resource: {signal.failure_id for signal in found} for resource, found in signals.items()}
    nodes = [failures for resource, failures in members.items() if resource.kind == "node"]
    return {
        resource
        for resource, failures in members.items()
        if resource.kind in {"switch", "rack"} and sum(2 * len(one & failures) > len(one) for one in nodes) >= _NODES
    }


def _store_assignment(
    work: UnitOfWork,
    recent: Sequence[DiagnosedAttempt],
    assignment: IncidentAssignment,
    earlier: Mapping[int, Sequence[Signal]],
    now: datetime,
) -> None:
    """Store which failures belong to which incident, and hold the requests of the earlier ones that still wait."""
    members: dict[int, dict[int, tuple[datetime, str | None]]] = {}
    for one in recent:
        incident = assignment.by_attempt.get(one.attempt_id)
        if incident is not None:
            members.setdefault(incident.id, {})[one.failure_id] = (min(one.event.ended_at, now), one.event.user)
    for incident_id, signals in earlier.items():
        for signal in signals:
            members.setdefault(incident_id, {}).setdefault(signal.failure_id, (signal.at, signal.user or None))
    for incident_id in sorted(members):
        work.incidents.add_failures(incident_id, members[incident_id])
    for incident_id, signals in sorted(earlier.items()):
        _hold_requests(work, incident_id, {signal.failure_id for signal in signals})
    if assignment.opened:
        current = {incident.id: incident for incident in work.incidents.opened()}
        for attempt_id, incident in assignment.by_attempt.items():
            assignment.by_attempt[attempt_id] = current.get(incident.id, incident)
        work.outbox.add(
            [notifications.of_incident("incident.opened", current.get(one.id, one)) for one in assignment.opened]
        )


def _hold_requests(work: UnitOfWork, incident_id: int, failure_ids: set[int]) -> None:
    waiting = [
        one.request_id
        for one in work.requests.of_failures(failure_ids)
        if one.origin == "policy"
        and (one.state == "waiting" or (one.state == "held" and one.held_by in _REPLACED_HOLDS))
    ]
    held = work.requests.hold(waiting, "incident", incident_id=incident_id)
    work.outbox.add(notifications.of_requests("resubmission.suppressed", held, f"held by incident {incident_id}"))


def add_missed_failures(work: UnitOfWork, incident: Incident, since: datetime) -> int:
    """Add failures that another transaction stored while the incident was being opened; returns their number."""
    # Locked for the second look: once another transaction has closed the incident, none of its failures is in an open
    # one, and all of them would seem to have been missed.
    if not _missed(work, incident, since) or work.incidents.get_locked(incident.id).closed_at is not None:
        return 0
    missed = _missed(work, incident, since)
    work.incidents.add_failures(incident.id, missed)
    _hold_requests(work, incident.id, set(missed))
    return len(missed)


def _missed(work: UnitOfWork, incident: Incident, since: datetime) -> dict[int, tuple[datetime, str | None]]:
    """The failures of an incident's resource that are in no open incident: when they ended, and their users."""
    signals = work.incident_signals.latest({incident.key: since})[incident.key]
    assigned = work.incidents.open_incident_of({signal.failure_id for signal in signals})
    return {one.failure_id: (one.at, one.user or None) for one in signals if one.failure_id not in assigned}


def _title(resource: SharedResource, attempts: Sequence[DiagnosedAttempt]) -> str:
    if resource.kind != "fingerprint":
        return resource.title
    verdict = attempts[0].verdict
    first = next((line.text for line in verdict.evidence if line.role == "initiating"), verdict.cause)
    return resource.title.replace(resource.value, first.strip()[:120])
