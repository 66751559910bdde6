"""Folding: many jobs of several users over one shared thing, within a window, are one incident."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from service.automation import notifications
from service.automation.job_ends import Subject
from service.automation.time_limits import STALE
from service.db.session import UnitOfWork
from service.incidents.records import Incident, NewIncident, NewSignal, Signal
from service.incidents.shared_resources import ORDER, Shared
from service.recommend.policy import Policy

_FOR_LESS = frozenset({"repair", "rate", "window", "storm"})
_ORDER = {kind: place for place, kind in enumerate(ORDER)}


@dataclass(slots=True)
class Folded:
    """The open incident of each attempt that is in one, by attempt id; and those that this batch opened."""

    of: dict[int, Incident] = field(default_factory=dict)
    opened: list[Incident] = field(default_factory=list)


def fold(
    work: UnitOfWork,
    subjects: Sequence[Subject],
    things: Mapping[int, tuple[Shared, ...]],
    policy: Policy,
    now: datetime,
    *,
    again: bool = False,
) -> Folded:
    """Count what these failures point at, open what became an incident, and put each failure into its own.

    `again`: their verdicts were revised, so that what they point at may be counted already.
    """
    recent = [one for one in subjects if things[one.attempt_id] and now - one.event.ended_at <= STALE]
    if not recent:
        return Folded()
    new = [one for one in recent if again or one.attempt_id == one.failure_id]
    work.signals.add(
        [
            NewSignal(thing.key, one.failure_id, min(one.event.ended_at, now), one.event.user)
            for one in new
            for thing in things[one.attempt_id]
        ],
        again=again,
    )
    known = {incident.key: incident for incident in work.incidents.opened()}
    folded = Folded()
    loose: list[Subject] = []
    for one in recent:
        incident = next((known[thing.key] for thing in things[one.attempt_id] if thing.key in known), None)
        if incident is None:
            loose.append(one)
        else:
            folded.of[one.attempt_id] = incident
    earlier = _open(work, loose, things, policy, now, folded) if loose else {}
    _put(work, recent, folded, earlier, now)
    return folded


def _open(
    work: UnitOfWork,
    loose: Sequence[Subject],
    things: Mapping[int, tuple[Shared, ...]],
    policy: Policy,
    now: datetime,
    folded: Folded,
) -> dict[int, list[Signal]]:
    """Open what has become one; the earlier failures of each new incident."""
    pointing: dict[Shared, list[Subject]] = {}
    for one in loose:
        for thing in things[one.attempt_id]:
            pointing.setdefault(thing, []).append(one)
    settings = {thing: policy.effective(cluster=thing.cluster).incident for thing in pointing}
    since = {
        thing.key: min(max(one.event.ended_at for one in ones), now) - timedelta(minutes=settings[thing].window_minutes)
        for thing, ones in pointing.items()
    }
    counted = work.signals.latest(since)
    many = [thing for thing in pointing if _enough(counted[thing.key], settings[thing].jobs, settings[thing].users)]
    if not many:
        return {}
    elsewhere = set(work.incidents.folded({signal.failure_id for thing in many for signal in counted[thing.key]}))
    earlier: dict[int, list[Signal]] = {}
    # In one order for all, so that two who open the same ones wait for each other in turn and never in a circle.
    for thing in sorted(many, key=lambda one: (_ORDER[one.kind], one.key)):
        left = [signal for signal in counted[thing.key] if signal.failure_id not in elsewhere]
        if not _enough(left, settings[thing].jobs, settings[thing].users):
            continue
        causes = [one.verdict.cause for one in pointing[thing]]
        incident, made = work.incidents.open(
            NewIncident(
                key=thing.key,
                kind=thing.kind,
                value=thing.value,
                cluster=thing.cluster,
                cause=max(sorted(set(causes)), key=causes.count),
                title=_title(thing, pointing[thing]),
                by="policy",
                probe_at=now + timedelta(minutes=settings[thing].probe_minutes),
            )
        )
        if made:
            folded.opened.append(incident)
        earlier[incident.id] = left
        elsewhere |= {signal.failure_id for signal in left}
        for one in pointing[thing]:
            folded.of.setdefault(one.attempt_id, incident)
    return earlier


def _put(
    work: UnitOfWork,
    recent: Sequence[Subject],
    folded: Folded,
    earlier: Mapping[int, Sequence[Signal]],
    now: datetime,
) -> None:
    """Write down who is in which incident, and hold what waits of those who were there before."""
    into: dict[int, dict[int, tuple[datetime, str | None]]] = {}
    for one in recent:
        incident = folded.of.get(one.attempt_id)
        if incident is not None:
            into.setdefault(incident.id, {})[one.failure_id] = (min(one.event.ended_at, now), one.event.user)
    for incident_id, signals in earlier.items():
        for signal in signals:
            into.setdefault(incident_id, {}).setdefault(signal.failure_id, (signal.at, signal.user or None))
    for incident_id in sorted(into):
        work.incidents.fold(incident_id, into[incident_id])
    for incident_id, signals in sorted(earlier.items()):
        _hold_waiting(work, incident_id, {signal.failure_id for signal in signals})
    if folded.opened:
        now_open = {incident.id: incident for incident in work.incidents.opened()}
        for attempt_id, incident in folded.of.items():
            folded.of[attempt_id] = now_open.get(incident.id, incident)
        work.outbox.add(
            [notifications.of_incident("incident.opened", now_open.get(one.id, one)) for one in folded.opened]
        )


def _hold_waiting(work: UnitOfWork, incident_id: int, failure_ids: set[int]) -> None:
    waiting = [
        one.request_id
        for one in work.requests.of_failures(failure_ids)
        if one.origin == "policy" and (one.state == "waiting" or (one.state == "held" and one.held_by in _FOR_LESS))
    ]
    held = work.requests.shelve(waiting, "incident", incident_id=incident_id)
    work.outbox.add(notifications.of_requests("resubmission.suppressed", held, f"held by incident {incident_id}"))


def gather_in(work: UnitOfWork, incident: Incident, since: datetime) -> int:
    """Put in what another transaction stored at the moment the incident was opened; how many that were."""
    signals = work.signals.latest({incident.key: since})[incident.key]
    known = work.incidents.folded({signal.failure_id for signal in signals})
    missed = {one.failure_id: (one.at, one.user or None) for one in signals if one.failure_id not in known}
    if not missed:
        return 0
    work.incidents.fold(incident.id, missed)
    _hold_waiting(work, incident.id, set(missed))
    return len(missed)


def _enough(signals: Sequence[Signal], jobs: int, users: int) -> bool:
    return len(signals) >= jobs and len({signal.user for signal in signals}) >= users


def _title(thing: Shared, ones: Sequence[Subject]) -> str:
    if thing.kind != "fingerprint":
        return thing.title
    first = next((line.text for line in ones[0].verdict.evidence if line.role == "initiating"), ones[0].verdict.cause)
    return thing.title.replace(thing.value, first.strip()[:120])
