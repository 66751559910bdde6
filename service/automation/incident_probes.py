"""Probes of incidents and trials of the retry-storm limit: the outcome of one job decides about the held ones."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from service.automation import notifications
from service.clock import Clock
from service.contracts.advice import HELPED
from service.db.session import UnitOfWork
from service.incidents.records import Incident
from service.recommend.incident_rules import release_times
from service.recommend.policy import Policy
from service.recommend.recent_activity import storm_key
from service.resubmissions.records import HOLD_TIME, AwaitedRequest, Request, StoredRequest

# At once, so that all are released at one pace, which takes days for so many. `housekeeping` releases those beyond it.
_ALL = 100_000
_SAID: Mapping[str, str] = {
    "succeeded": "succeeded",
    "got_past": "got past the point where it had failed",
    "failed_same": "failed the same way",
    "failed_otherwise": "failed in another way",
    "unknown": "ended in a way that is not known",
}


def apply_outcome(work: UnitOfWork, awaited: AwaitedRequest, request: Request, *, policy: Policy, clock: Clock) -> None:
    """Act on an outcome if it is that of a probe or a trial."""
    _apply_trial_outcome(work, awaited, request, policy=policy, clock=clock)
    for incident in work.incidents.opened(awaited.cluster):
        if incident.probe_row != awaited.id or incident.state != "probing":
            continue
        settings = policy.effective(cluster=incident.cluster).incident
        if request.outcome in HELPED:
            why = f"probe job {request.job_id} {_SAID[request.outcome]}"
            close(work, incident, why, "probe", policy=policy, clock=clock)
        else:
            why = f"it {_SAID[request.outcome]}" if request.outcome else "its outcome is not known"
            next_at = clock.now() + timedelta(minutes=settings.probe_minutes)
            keep_holding(work, incident, request.job_id, why, next_at)


def keep_holding(work: UnitOfWork, incident: Incident, probe: str, why: str, next_probe_at: datetime) -> None:
    """The probe did not succeed: all jobs stay held until the next probe."""
    work.incidents.change(incident.id, state="holding", probe_id=None, probe_at=next_probe_at)
    work.incidents.note(
        incident.id, "policy", "probe failed", f"probe job {probe}: {why}; another job will be the probe"
    )


def close(work: UnitOfWork, incident: Incident, why: str, actor: str, *, policy: Policy, clock: Clock) -> Incident:
    """Close an incident and release its held requests one by one."""
    now = clock.now()
    closed = work.incidents.change(
        incident.id, state="closed", closed_at=now, closed_by=actor[:200], probe_at=None, by_hand=False
    )
    held = work.leases.held_by(incident.cluster, "incident", incident_id=incident.id, limit=_ALL)
    released = release(work, held, incident.cluster, policy=policy, now=now)
    work.incidents.note(incident.id, actor, "closed", f"{why}; {released} held resubmissions are released one by one")
    work.outbox.add([notifications.of_incident("incident.closed", closed, why)])
    return closed


def release(work: UnitOfWork, held: Sequence[StoredRequest], cluster: str, *, policy: Policy, now: datetime) -> int:
    """Release held requests at the policy's pace; returns how many."""
    settings = policy.effective(cluster=cluster).incident
    planned = release_times([request.lineage for request in held], settings, now)
    times = {request.request_id: at for request, at in zip(held, planned, strict=True)}
    latest = max(times.values(), default=now)
    released = work.requests.release(times, expires_at=latest + HOLD_TIME)
    work.outbox.add(notifications.of_requests("resubmission.requested", released))
    return len(released)


def held_by_storm(work: UnitOfWork, key: str, cluster: str) -> list[StoredRequest]:
    """The requests that the retry-storm limit holds for one key."""
    held = work.leases.held_by(cluster, "storm", limit=_ALL)
    return [one for one in held if storm_key(one.cluster, one.cause, one.resource) == key]


def end_storm(work: UnitOfWork, key: str, cluster: str, *, policy: Policy, now: datetime) -> None:
    """Stop holding a key of the retry-storm limit, and release its held requests one by one."""
    work.storms.clear(key)
    release(work, held_by_storm(work, key, cluster), cluster, policy=policy, now=now)


def _apply_trial_outcome(
    work: UnitOfWork, awaited: AwaitedRequest, request: Request, *, policy: Policy, clock: Clock
) -> None:
    key = storm_key(awaited.cluster, awaited.cause, awaited.resource)
    storm = work.storms.held(awaited.cluster).get(key)
    if storm is None or storm.trial != awaited.id:
        return
    if request.outcome in HELPED:
        end_storm(work, key, awaited.cluster, policy=policy, now=clock.now())
    elif request.outcome == "unknown":
        work.storms.end_trial(key, awaited.id)
    else:
        work.storms.restart(key, "the trial resubmit failed again")
