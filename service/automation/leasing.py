"""Leases: what may be done is decided at the very moment it is given away, in the same transaction."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from service.automation import lineage, notifications, outcome_matching
from service.automation.fact_gathering import ClusterActivity, cluster_activity, storm_key
from service.automation.time_limits import MOST_TRIES
from service.clock import Clock
from service.db.session import Store, UnitOfWork
from service.errors import Conflict, FieldError
from service.incidents.records import Incident
from service.recommend import storm_brake
from service.recommend.incident_rules import choose_probe
from service.recommend.policy import Policy
from service.requests.records import AckResult, Lease, RecentResubmit, Request
from service.requests.repository.requests import keys_of, request_of

# A lease that ran out leaves the request waiting or held; whoever had it last may still say that it was done.
_ANSWERABLE = frozenset({"leased", "waiting", "held"})
_ENDED_HERE = frozenset({"withdrawn", "expired"})
_LOOKED_AT = 500  # candidates a lease; those that something holds are put aside, so that the next lease sees others


@dataclass(slots=True)
class _Round:
    """One lease in the making."""

    work: UnitOfWork
    cluster: str
    now: datetime
    policy: Policy
    open: dict[str, Incident]
    near: ClusterActivity
    room: int
    room_of_user: Counter[str] = field(default_factory=Counter)
    taken: list[Any] = field(default_factory=list)


def lease(
    store: Store, policy: Policy, clock: Clock, *, hook: str, cluster: str, limit: int, seconds: float
) -> list[Lease]:
    """Give a hook what may go now; nothing while the switch is off.

    Looked at here and not before: the switch, open incidents and their probes, storms, the rate of the cluster and of
    each user, and that nothing has expired.
    """
    with store.unit_of_work() as work:
        if work.kill_switch.get_locked().stopped:
            return []
        work.leases.alone_on(cluster)
        now = clock.now()
        own = policy.effective(cluster=cluster)
        near = cluster_activity(work, cluster, own, now)
        rate = near.rate(None, now - timedelta(minutes=own.limits.rate_minutes))
        opened = {incident.key: incident for incident in work.incidents.opened(cluster)}
        current = _Round(work, cluster, now, own, opened, near, min(limit, own.limits.rate_per_cluster - rate.cluster))
        if current.room > 0:
            _probes(current)
            _trials(current)
            _due(current)
        return work.leases.give(current.taken, hook, seconds)


def _due(current: _Round) -> None:
    # Left out beforehand, so that what one user's rate keeps waiting stands in nobody else's way, however much it is.
    users = {one.user for one in current.near.acted if one.user is not None}
    resting = [user for user in users if not _room_for(current, user)]
    for row in current.work.leases.due(current.cluster, limit=_LOOKED_AT, resting=resting):
        if len(current.taken) >= current.room:
            return
        incident = next((current.open[key] for key in keys_of(row) if key in current.open), None)
        sent = incident is not None and incident.probe_row == row.id
        if incident is not None and row.origin == "policy" and not sent and not _leaves_out(row, incident):
            _shelve(current, row, "incident", incident)
        elif row.origin == "policy" and not sent and _stormy(current, row):
            _shelve(current, row, "storm", None)
        elif _room_for_user(current, row):
            _take(current, row)


def _probes(current: _Round) -> None:
    """One of each incident whose time has come, the least costly first."""
    for incident in sorted(current.open.values(), key=lambda one: one.id):
        due = incident.probe_at is not None and incident.probe_at <= current.now
        if incident.by_hand or incident.state != "holding" or not due or len(current.taken) >= current.room:
            continue
        held = current.work.incidents.hold(incident.id)
        if held.state != "holding" or held.by_hand or held.probe_row is not None:
            continue
        rows = current.work.leases.held_by(current.cluster, "incident", incident_id=incident.id, limit=_LOOKED_AT)
        tried = current.work.leases.tried(incident.id)
        chosen = choose_probe([row.lineage for row in rows], tried)
        if chosen is None:
            continue
        probe = rows[chosen]
        current.work.incidents.change(incident.id, state="probing", probe_id=probe.id, probes=held.probes + 1)
        current.work.incidents.note(
            incident.id,
            "policy",
            "probe",
            f"job {probe.job_id} is released as the probe (request {probe.public_id})",
        )
        _take(current, probe)


def _trials(current: _Round) -> None:
    """One of each key that the brake has held for long enough."""
    rows: Sequence[Any] | None = None
    for key, held in sorted(current.near.storms.items()):
        rested = current.now - held.held_since >= timedelta(minutes=current.policy.storm.half_open_minutes)
        if held.trial is not None or not rested or len(current.taken) >= current.room:
            continue
        if rows is None:
            rows = current.work.leases.held_by(current.cluster, "storm", limit=_LOOKED_AT)
        row = next((row for row in rows if storm_key(row.cluster, row.cause, row.resource) == key), None)
        if row is not None:
            current.work.storms.trial(key, row.id, current.now)
            _take(current, row)


def _stormy(current: _Round, row: Any) -> bool:
    """Whether the brake holds this row's key; it closes here where this one would be one too many."""
    key = storm_key(row.cluster, row.cause, row.resource)
    if key in current.near.storms and current.near.storms[key].trial == row.id:
        return False
    settings = current.policy.storm
    state = current.near.storm(key, row.cause, row.resource, current.now - timedelta(minutes=settings.window_minutes))
    found = storm_brake.assess(state, settings, current.now)
    if found in {"many", "failing"}:
        why = (
            f"{state.resubmits} resubmits in {settings.window_minutes:g} minutes"
            if found == "many"
            else f"{state.failed} of {state.failed + state.helped} resubmits failed again"
        )
        current.work.storms.hold(key, current.cluster, why)
        current.near = ClusterActivity(current.near.acted, current.work.storms.held(current.cluster))
        return True
    return found in {"held", "trial"}


def _room_for_user(current: _Round, row: Any) -> bool:
    return row.origin != "policy" or row.user_name is None or _room_for(current, row.user_name)


def _room_for(current: _Round, user: str) -> bool:
    limits = current.policy.limits
    before = current.near.rate(user, current.now - timedelta(minutes=limits.rate_minutes)).user
    return before < limits.rate_per_user


def _take(current: _Round, row: Any) -> None:
    current.taken.append(row)
    gone = RecentResubmit(row.id, row.cause, row.resource, row.user_name, current.now, None)
    # A lease that ran out and is given again is no further resubmit.
    acted = [one for one in current.near.acted if one.id != row.id]
    current.near = ClusterActivity([*acted, gone], current.near.storms)


def _shelve(current: _Round, row: Any, held_by: str, incident: Incident | None) -> None:
    # One whose lease ran out is held too: its holder may still answer, and whoever gets it later looks first.
    held = current.work.requests.shelve(
        [row.public_id], held_by, incident_id=None if incident is None else incident.id, leased=row.state == "leased"
    )
    why = f"held by incident {incident.id}" if incident is not None else "held by the storm brake"
    current.work.outbox.add(notifications.of_requests("resubmission.suppressed", held, why))


def _leaves_out(row: Any, incident: Incident) -> bool:
    """Whether a request runs where the incident is not: one node's incident, and that node is left out."""
    return incident.kind == "node" and incident.value in request_of(row).exclude_nodes


def ack(
    store: Store,
    request_id: str,
    token: str,
    result: AckResult,
    *,
    new_job_id: str | None = None,
    detail: str | None = None,
    clock: Clock,
    policy: Policy,
) -> Request:
    """Take a hook's answer; the same answer twice is answered alike.

    Raises:
        NotFound: no such request.
        Conflict: it was withdrawn meanwhile (what was done is noted all the same), or another lease is in force.
    """
    with store.unit_of_work() as work:
        row = work.requests.row_for_update(request_id)
        _check_token(row, token)
        if row.result is not None and row.state not in _ENDED_HERE:
            if (row.result, row.new_job_id) != (result, new_job_id):
                raise Conflict(f"request {request_id} was answered with {row.result} before", _result(row.result))
            return work.requests.get(request_id)
        if row.state in _ANSWERABLE or (row.state == "done" and row.outcome is not None):
            return _settled(work, row, result, new_job_id, detail, policy=policy, clock=clock)
        if row.state in _ENDED_HERE and row.result is None and result in {"done", "unknown"}:
            _acted_all_the_same(work, row, result, new_job_id, detail)
    raise Conflict(f"request {request_id} is {row.state}: {row.detail}", _result(row.state))


def _settled(
    work: UnitOfWork,
    row: Any,
    result: AckResult,
    new_job_id: str | None,
    detail: str | None,
    *,
    policy: Policy,
    clock: Clock,
) -> Request:
    request = work.leases.settle(row, result, new_job_id=new_job_id, detail=detail)
    if result in {"done", "already_done"}:
        lineage.adopt(work, row, new_job_id)
        work.outbox.add([notifications.of_request("resubmission.done", request, result)])
        outcome_matching.ended_before_the_answer(work, request, policy=policy, clock=clock)
        return work.requests.get(request.request_id)
    work.outbox.add([notifications.of_request("resubmission.suppressed", request, f"the hook said {result}")])
    if result == "refused":
        nothing_came(work, row, "the hook refused it", clock)
    return request


def _acted_all_the_same(
    work: UnitOfWork, row: Any, result: AckResult, new_job_id: str | None, detail: str | None
) -> None:
    request = work.leases.settle(row, result, new_job_id=new_job_id, detail=detail, state="withdrawn")
    [request] = work.requests.retract([request.request_id])
    lineage.adopt(work, row, new_job_id)
    work.outbox.add([notifications.of_request("resubmission.done", request, "acted on a retracted verdict")])


def fail(
    store: Store,
    request_id: str,
    token: str,
    error: str,
    retry_after_s: float | None,
    *,
    clock: Clock,
) -> Request:
    """A hook could not act: it waits and is leased again, or has failed where no time was given (or too often).

    Raises:
        NotFound: no such request.
        Conflict: it was withdrawn meanwhile, or another lease is in force.
    """
    with store.unit_of_work() as work:
        row = work.requests.row_for_update(request_id)
        _check_token(row, token)
        if row.state == "failed":
            return work.requests.get(request_id)
        if row.state != "leased":
            raise Conflict(f"request {request_id} is {row.state}: {row.detail or ''}".rstrip(": "), _result(row.state))
        if retry_after_s is not None and row.tries + 1 < MOST_TRIES:
            return work.leases.put_back(row, not_before=clock.now() + timedelta(seconds=retry_after_s), detail=error)
        [failed] = work.requests.end([request_id], "failed", detail=error)
        work.outbox.add([notifications.of_request("resubmission.failed", failed, error[:300])])
        nothing_came(work, row, "the hook could not do it", clock)
        return failed


def nothing_came(work: UnitOfWork, row: Any, why: str, clock: Clock) -> None:
    """A request ended without a job: where it was a probe or a trial, another one may go."""
    again = clock.now()
    for incident in work.incidents.opened(row.cluster):
        if incident.probe_row == row.id:
            work.incidents.change(incident.id, state="holding", probe_id=None, probe_at=again)
            work.incidents.note(
                incident.id, "policy", "probe failed", f"probe {row.public_id}: {why}; another one goes"
            )
    key = storm_key(row.cluster, row.cause, row.resource)
    held = work.storms.held(row.cluster).get(key)
    if held is not None and held.trial == row.id:
        work.storms.trial(key, None, None)


def _check_token(row: Any, token: str) -> None:
    if row.lease_token is None or row.lease_token != token:
        raise Conflict(
            f"request {row.public_id}: this lease is no longer in force",
            (FieldError("lease_token", "the token of the lease in force"),),
        )


def _result(got: str) -> tuple[FieldError, ...]:
    return (FieldError("result", "the first answer to a request that is leased", got),)
