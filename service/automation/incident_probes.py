"""Probes and trials: one is let go first, and its outcome decides over all that waits behind it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from service.automation import notifications
from service.automation.fact_gathering import storm_key
from service.automation.time_limits import HELD_FOR
from service.clock import Clock
from service.db.session import UnitOfWork
from service.incidents.records import Incident
from service.recommend.incident_rules import release_times
from service.recommend.policy import Policy
from service.requests.records import AwaitedRequest, Request

_GOOD = frozenset({"succeeded", "got_past"})


def answered(work: UnitOfWork, awaited: AwaitedRequest, request: Request, *, policy: Policy, clock: Clock) -> None:
    """An outcome is known: where it was a probe's or a trial's, it decides."""
    _trial_answered(work, awaited, request, policy=policy, clock=clock)
    for incident in work.incidents.opened(awaited.cluster):
        if incident.probe_row != awaited.id or incident.state != "probing":
            continue
        settings = policy.effective(cluster=incident.cluster).incident
        if request.outcome in _GOOD:
            close(work, incident, f"probe {request.request_id}: {request.outcome}", "probe", policy=policy, clock=clock)
        else:
            failed = request.outcome == "failed_same"
            why = "it failed the same way" if failed else f"its outcome says nothing ({request.outcome})"
            hold_on(work, incident, request.request_id, why, clock.now() + timedelta(minutes=settings.probe_minutes))


def hold_on(work: UnitOfWork, incident: Incident, probe: str, why: str, again_at: datetime) -> None:
    """The probe opened no way: everything stays held until the next one."""
    work.incidents.change(incident.id, state="holding", probe_id=None, probe_at=again_at)
    work.incidents.note(incident.id, "policy", "probe failed", f"probe {probe}: {why}; another is let go later")


def close(work: UnitOfWork, incident: Incident, why: str, by: str, *, policy: Policy, clock: Clock) -> Incident:
    """It is over: let what it held go, one after the other."""
    now = clock.now()
    closed = work.incidents.change(
        incident.id, state="closed", closed_at=now, closed_by=by[:200], probe_at=None, by_hand=False
    )
    rows = []
    for held_by in ("incident",):
        rows += work.leases.held_by(incident.cluster, held_by, incident_id=incident.id, limit=100_000)
    let_go = release(work, rows, incident.cluster, policy=policy, now=now)
    work.incidents.note(incident.id, by, "closed", f"{why}; {let_go} held resubmits are let go one by one")
    work.outbox.add([notifications.of_incident("incident.closed", closed, why)])
    return closed


def release(work: UnitOfWork, rows: Sequence[Any], cluster: str, *, policy: Policy, now: datetime) -> int:
    """Let held requests go at the policy's pace, each at a time of its own; how many that were."""
    settings = policy.effective(cluster=cluster).incident
    planned = release_times([row.lineage for row in rows], settings, now)
    times = {row.public_id: at for row, at in zip(rows, planned, strict=True)}
    latest = max(times.values(), default=now)
    gone = work.requests.let_go(times, expires_at=latest + HELD_FOR)
    work.outbox.add(notifications.of_requests("resubmission.requested", gone))
    return len(gone)


def _trial_answered(
    work: UnitOfWork, awaited: AwaitedRequest, request: Request, *, policy: Policy, clock: Clock
) -> None:
    key = storm_key(awaited.cluster, awaited.cause, awaited.resource)
    held = work.storms.held(awaited.cluster).get(key)
    if held is None or held.trial != awaited.id:
        return
    if request.outcome in _GOOD:
        work.storms.clear(key)
        rows = [
            row
            for row in work.leases.held_by(awaited.cluster, "storm", limit=100_000)
            if storm_key(row.cluster, row.cause, row.resource) == key
        ]
        release(work, rows, awaited.cluster, policy=policy, now=clock.now())
    elif request.outcome == "unknown":
        work.storms.trial(key, None, None)
    else:
        work.storms.hold_on(key, "the one that was let go to see failed again")
