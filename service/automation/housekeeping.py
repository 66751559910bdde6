"""Periodic work: requests expire, long probes succeed, quiet incidents close, missing ends become unknown."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from service.automation import hook_answers, incident_detection, incident_probes, notifications, outcome_matching
from service.automation.success_rates import SuccessRateCache
from service.automation.time_limits import INCIDENT_FAILURE_AGE, OUTCOME_WAIT, QUIET_TIME
from service.clock import Clock
from service.db.session import ReadSession, Store, UnitOfWork
from service.errors import ConfigurationError, Unavailable
from service.incidents.records import Incident
from service.recommend.policy import Policy
from service.resubmissions.records import AwaitedRequest, Request, StoredRequest

log = logging.getLogger(__name__)

# A probe or trial that a person, or another incident, holds starts no job either.
_WITHOUT_JOB = frozenset({"expired", "withdrawn", "failed", "refused", "unknown", "held"})
# Reasons of holds that end with time; these requests are released then, without asking the rules again.
_TEMPORARY_HOLDS = ("rate", "window", "policy")
_PAGE = 200
_EXPIRED = "it expired before it was carried out"


def tick(store: Store, policy: Policy, clock: Clock, success_rates: SuccessRateCache) -> int:
    """Do the periodic work that is due; returns how many changes were made. Safe in several processes at once."""
    with store.reading() as reading:
        if not _anything_due(reading, clock):
            return 0
        incidents = [incident.id for incident in reading.incidents.opened()]
    steps: list[Callable[[UnitOfWork], int]] = [
        lambda work: _expire(work, clock),
        lambda work: _end_waiting_for_outcomes(work, policy, clock, success_rates),
        *(partial(_check_opened, number=number, policy=policy, clock=clock) for number in incidents),
        lambda work: _end_trials(work, policy, clock),
        _stop_marked,
        lambda work: _release_temporary_holds(work, policy, clock),
        lambda work: _release_what_nothing_holds(work, policy, clock),
        lambda work: work.incident_signals.delete_before(clock.now() - 2 * INCIDENT_FAILURE_AGE),
    ]
    return sum(_apart(store, step) for step in steps)


def _apart(store: Store, step: Callable[[UnitOfWork], int]) -> int:
    """The changes of a step in its own transaction: an unexpected error of one must not undo the others, every time."""
    try:
        with store.unit_of_work() as work:
            return step(work)
    except (Unavailable, ConfigurationError):
        raise
    except Exception:
        log.exception("a step of the periodic work on resubmissions and incidents failed")
        return 0


def _expire(work: UnitOfWork, clock: Clock) -> int:
    expired = work.requests.expire()
    work.outbox.add(notifications.of_requests("resubmission.suppressed", expired, _EXPIRED))
    for request in expired:
        hook_answers.record_no_job(work, work.requests.stored(request.request_id), _EXPIRED, clock)
    return len(expired)


def _anything_due(reading: ReadSession, clock: Clock) -> bool:
    """Whether there is anything to check: usually there is not, and then no write transaction is needed."""
    return (
        reading.requests.any_open()
        or reading.outcomes.any_awaited()
        or bool(reading.incidents.opened())
        or reading.incident_signals.any_before(clock.now() - 2 * INCIDENT_FAILURE_AGE)
    )


def _end_waiting_for_outcomes(work: UnitOfWork, policy: Policy, clock: Clock, success_rates: SuccessRateCache) -> int:
    recorded: list[tuple[AwaitedRequest, Request]] = []
    for awaited in work.outcomes.without_end_since(clock.now() - OUTCOME_WAIT):
        request = work.outcomes.record(awaited, "unknown")
        if request is not None:
            recorded.append((awaited, request))
    if recorded:
        outcome_matching.apply_outcomes(work, recorded, policy=policy, clock=clock)
        success_rates.clear()
    return len(recorded)


def _check_opened(work: UnitOfWork, *, number: int, policy: Policy, clock: Clock) -> int:
    """Check an incident that was open a moment ago; it is locked, so that it stays as it is meanwhile."""
    incident = work.incidents.get_locked(number)
    return 0 if incident.closed_at is not None else _check_incident(work, incident, policy, clock)


def _check_incident(work: UnitOfWork, incident: Incident, policy: Policy, clock: Clock) -> int:
    now = clock.now()
    settings = policy.effective(cluster=incident.cluster).incident
    window = timedelta(minutes=settings.window_minutes)
    added = incident_detection.add_missed_failures(work, incident, incident.opened_at - window)
    if incident.by_hand or added:
        return added
    if incident.state == "probing" and incident.probe_row is not None:
        probe = work.requests.by_row_id(incident.probe_row)
        if probe is None or (probe.state in _WITHOUT_JOB and probe.outcome is None):
            name = "?" if probe is None else probe.job_id
            incident_probes.keep_holding(work, incident, name, "no job was started", now)
            return 1
        return _check_running_probe(
            work, incident, probe, timedelta(minutes=settings.probe_wait_minutes), policy, clock
        )
    quiet = now - max(incident.last_at, incident.opened_at) >= max(QUIET_TIME, 2 * window)
    if quiet and not work.leases.held_by(incident.cluster, "incident", incident_id=incident.id, limit=1):
        why = "no requests are held and no new failures occurred"
        incident_probes.close(work, incident, why, "quiet", policy=policy, clock=clock)
        return 1
    return 0


def _check_running_probe(
    work: UnitOfWork, incident: Incident, probe: StoredRequest, wait: timedelta, policy: Policy, clock: Clock
) -> int:
    """A probe that has run for `wait` without failing has succeeded, unless other jobs failed meanwhile."""
    if probe.state != "done" or probe.outcome is not None or probe.ended_at is None:
        return 0
    if clock.now() - probe.ended_at < wait:
        return 0
    if incident.last_at > probe.ended_at:
        why = "it has not ended, and other jobs of this incident failed meanwhile"
        incident_probes.keep_holding(work, incident, probe.job_id, why, clock.now())
    else:
        minutes = round(wait.total_seconds() / 60)
        why = f"probe job {probe.job_id} has run for {minutes} minutes without failing, and no other job failed"
        incident_probes.close(work, incident, why, "probe", policy=policy, clock=clock)
    return 1


def _release_what_nothing_holds(work: UnitOfWork, policy: Policy, clock: Clock) -> int:
    """Release requests that were held for an incident or a storm while another transaction ended it."""
    by_cluster: defaultdict[str, list[StoredRequest]] = defaultdict(list)
    for request in work.leases.held_without_cause():
        by_cluster[request.cluster].append(request)
    now = clock.now()
    return sum(
        incident_probes.release(work, held, cluster, policy=policy, now=now) for cluster, held in by_cluster.items()
    )


def _end_trials(work: UnitOfWork, policy: Policy, clock: Clock) -> int:
    """Let another request be the trial of a storm if the trial starts no job; end the storm if its job runs on.

    Like a probe, a trial that has run for some time without failing has succeeded, unless other jobs failed meanwhile.
    """
    trials = {key: (storm.cluster, storm.trial) for key, storm in work.storms.held().items() if storm.trial is not None}
    ended = 0
    for key, (cluster, row_id) in trials.items():
        request = work.requests.by_row_id(row_id)
        wait = timedelta(minutes=policy.effective(cluster=cluster).incident.probe_wait_minutes)
        if request is None or (request.state in _WITHOUT_JOB and request.outcome is None):
            ended += work.storms.end_trial(key, row_id)
        elif request.outcome is None and request.state == "done" and request.ended_at is not None:
            started = request.ended_at  # the request ended when its job was started
            if clock.now() - started < wait:
                continue
            if any(one.created_at > started for one in incident_probes.held_by_storm(work, key, cluster)):
                work.storms.restart(key, "the trial resubmit has not ended, and other jobs failed meanwhile")
            else:
                incident_probes.end_storm(work, key, cluster, policy=policy, now=clock.now())
            ended += 1
    return ended


def _stop_marked(work: UnitOfWork) -> int:
    """Withdraw or hold requests that were stored while a person excluded or held their lineage."""
    excluded = [request.request_id for request in work.leases.open_despite_mark("never")]
    why = "a person excluded the job from automation"
    withdrawn = work.requests.end(excluded, "withdrawn", detail=why)
    work.outbox.add(notifications.of_requests("resubmission.suppressed", withdrawn, why))
    waiting = [request.request_id for request in work.leases.open_despite_mark("hold")]
    held = work.requests.hold(waiting, "person", leased=True)
    work.outbox.add(notifications.of_requests("resubmission.suppressed", held, "held by a person"))
    return len(withdrawn) + len(held)


def _temporary_holds(work: UnitOfWork, now: datetime) -> Iterator[tuple[StoredRequest, Sequence[datetime]]]:
    """All of them, page by page: those whose limit lasts longer must not keep later ones from being released.

    With each: when the automatic resubmits that its limit counts were leased, if it is held by the limit per window.
    """
    last = 0
    while page := work.leases.held_temporarily(_TEMPORARY_HOLDS, before=now, after_id=last, limit=_PAGE):
        leased_at = work.leases.leased_at_of_lineages([one.lineage for one in page if one.held_by == "window"])
        for one in page:
            yield one, leased_at.get((one.lineage, one.side == "user"), ())
        last = page[-1].id


def _release_temporary_holds(work: UnitOfWork, policy: Policy, clock: Clock) -> int:
    """Release requests that were held for a limited time; rates and storms are checked again when they are leased."""
    now = clock.now()
    count = 0
    for request, leased_at in _temporary_holds(work, now):
        limits = policy.effective(cluster=request.cluster, queue=request.queue, team=request.team).limits
        since = now - timedelta(hours=limits.window_hours)
        most = limits.user_per_window if request.side == "user" else limits.infra_per_window
        if request.held_by == "window" and sum(at > since for at in leased_at) >= most:
            continue
        released = work.requests.release({request.request_id: now}, expires_at=request.expires_at)
        work.outbox.add(notifications.of_requests("resubmission.requested", released))
        count += len(released)
    return count
