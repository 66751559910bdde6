"""What time alone brings: requests expire, probes run for long, incidents go quiet, ends never come."""

from datetime import timedelta
from typing import Any

from service.automation import incident_detection, incident_probes, leasing, notifications, outcome_matching
from service.automation.success_rates import SuccessRateCache
from service.automation.time_limits import INCIDENT_FAILURE_AGE, QUIET_AFTER, SILENT_AFTER
from service.clock import Clock
from service.db.session import ReadSession, Store, UnitOfWork
from service.incidents.records import Incident
from service.recommend.policy import Policy
from service.requests.records import AwaitedRequest, Request

_NOTHING_CAME = frozenset({"expired", "withdrawn", "failed", "refused", "unknown"})
# Held for something that passes by itself; asked again when it may have passed.
_ASKED_AGAIN = ("rate", "window", "not yet", "policy")


def tick(store: Store, policy: Policy, clock: Clock, success_rates: SuccessRateCache) -> int:
    """Do what is due; how many things were. Safe to call from any number of processes at once."""
    with store.reading() as reading:
        if not _due(reading, clock):
            return 0
    with store.unit_of_work() as work:
        gone = work.requests.expire()
        work.outbox.add(notifications.of_requests("resubmission.suppressed", gone, "it was not done in time"))
        for one in gone:
            row = work.requests.row(one.request_id)
            leasing.nothing_came(work, row, "it was not done in time", clock)
        count = len(gone) + _silent(work, policy, clock, success_rates)
        for incident in work.incidents.opened():
            count += _incident(work, incident, policy, clock)
        count += _asked_again(work, policy, clock)
        count += work.incident_signals.forget(clock.now() - 2 * INCIDENT_FAILURE_AGE)
        return count


def _due(reading: ReadSession, clock: Clock) -> bool:
    """Whether there is anything to look at: most of the time there is not, and nobody should wait for a writer."""
    return (
        reading.requests.any_open()
        or reading.outcomes.any_awaited()
        or bool(reading.incidents.opened())
        or reading.incident_signals.any_before(clock.now() - 2 * INCIDENT_FAILURE_AGE)
    )


def _silent(work: UnitOfWork, policy: Policy, clock: Clock, success_rates: SuccessRateCache) -> int:
    done: list[tuple[AwaitedRequest, Request]] = []
    for awaited in work.outcomes.silent(clock.now() - SILENT_AFTER):
        request = work.outcomes.record(awaited, "unknown")
        if request is not None:
            done.append((awaited, request))
    if done:
        outcome_matching.settle(work, done, policy=policy, clock=clock)
        success_rates.forget()
    return len(done)


def _incident(work: UnitOfWork, incident: Incident, policy: Policy, clock: Clock) -> int:
    now = clock.now()
    settings = policy.effective(cluster=incident.cluster).incident
    added = incident_detection.add_missed_failures(
        work, incident, incident.opened_at - timedelta(minutes=settings.window_minutes)
    )
    if incident.by_hand or added:
        return added
    if incident.state == "probing" and incident.probe_row is not None:
        held = work.incidents.hold(incident.id)
        row = work.requests.by_number(incident.probe_row)
        if held.state != "probing" or held.probe_row != incident.probe_row:
            return 0
        if row is None or (row.state in _NOTHING_CAME and row.outcome is None):
            name = "?" if row is None else row.public_id
            incident_probes.hold_on(work, incident, name, "nothing came of it", now)
            return 1
        return _long_run(work, held, row, timedelta(minutes=settings.probe_wait_minutes), policy, clock)
    quiet = now - max(incident.last_at, incident.opened_at) >= max(
        QUIET_AFTER, timedelta(minutes=2 * settings.window_minutes)
    )
    if quiet and not work.leases.held_by(incident.cluster, "incident", incident_id=incident.id, limit=1):
        incident_probes.close(
            work, incident, "nothing is held and nothing new failed", "quiet", policy=policy, clock=clock
        )
        return 1
    return 0


def _long_run(work: UnitOfWork, incident: Incident, row: Any, wait: timedelta, policy: Policy, clock: Clock) -> int:
    """A probe that was started long ago and has not failed has got through, unless others failed meanwhile."""
    if row.state != "done" or row.outcome is not None or clock.now() - row.ended_at < wait:
        return 0
    if incident.last_at > row.ended_at:
        why = "it has not ended, and others failed over the same thing meanwhile"
        incident_probes.hold_on(work, incident, row.public_id, why, clock.now())
    else:
        minutes = round(wait.total_seconds() / 60)
        why = f"probe {row.public_id} has run for {minutes} minutes without failing, and nothing else failed"
        incident_probes.close(work, incident, why, "probe", policy=policy, clock=clock)
    return 1


def _asked_again(work: UnitOfWork, policy: Policy, clock: Clock) -> int:
    """Let go what was held only for a while: the lease looks at rate and storm itself, and at the very moment."""
    now = clock.now()
    count = 0
    for row in work.leases.held_for_a_while(_ASKED_AGAIN, before=now):
        own = policy.effective(cluster=row.cluster, queue=row.queue, team=row.team)
        since = now - timedelta(hours=own.limits.window_hours)
        most = own.limits.user_per_window if row.side == "user" else own.limits.infra_per_window
        if row.held_by == "window" and work.leases.of_lineage_since(row.lineage, row.side, since) >= most:
            continue
        gone = work.requests.let_go({row.public_id: now}, expires_at=row.expires_at)
        work.outbox.add(notifications.of_requests("resubmission.requested", gone))
        count += len(gone)
    return count
