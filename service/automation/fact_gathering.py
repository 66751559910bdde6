"""The facts of a batch of failures, by a handful of reads however many they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache

from service.automation.incident_detection import IncidentAssignment
from service.automation.job_ends import DiagnosedAttempt
from service.automation.lineage import LineageAssignment, LineageHistories
from service.automation.success_rates import SuccessRates
from service.contracts.event import JobCompletion
from service.db.session import UnitOfWork
from service.incidents.records import Incident
from service.incidents.shared_resources import SharedResource, storm_resource
from service.recommend import event_facts, node_exclusion
from service.recommend.facts import (
    ActionRate,
    Facts,
    Lineage,
    OpenIncident,
    OptIn,
    StormState,
    Suspicion,
    SwitchState,
)
from service.recommend.policy import Policy
from service.requests.records import HeldStorm, Mark, RecentResubmit

_HELPED = frozenset({"succeeded", "got_past"})
_FAILED = frozenset({"failed_same", "failed_otherwise"})
DEPENDENTS_SHOWN = 20
_NO_RATE = ActionRate()


@dataclass(frozen=True, slots=True)
class ClusterActivity:
    """What is known cluster_activity the jobs of one cluster: what was let go lately, and what the brake holds."""

    acted: Sequence[RecentResubmit]
    storms: Mapping[str, HeldStorm]

    def storm(self, key: str, cause: str, thing: str, since: datetime) -> StormState:
        """The state of one key of the brake."""
        held = self.storms.get(key)
        if held is None and not self.acted:
            return StormState(key=key)
        mine = [
            one
            for one in self.acted
            if one.cause == cause and one.resource == thing and one.at > (since if held is None else held.held_since)
        ]
        return StormState(
            key=key,
            resubmits=len(mine),
            helped=sum(one.outcome in _HELPED for one in mine),
            failed=sum(one.outcome in _FAILED for one in mine),
            held_since=None if held is None else held.held_since,
            trial=held is not None and held.trial is not None,
        )

    def rate(self, user: str | None, since: datetime) -> ActionRate:
        """What was let go on the cluster, and of one user there."""
        if not self.acted:
            return _NO_RATE
        mine = [one for one in self.acted if one.at > since]
        return ActionRate(len(mine), sum(one.user == user for one in mine) if user is not None else 0)


def storm_key(cluster: str, cause: str, thing: str) -> str:
    """What the brake counts by."""
    return f"{cause}|{cluster}|{thing}"


def cluster_activity(work: UnitOfWork, cluster: str, policy: Policy, now: datetime) -> ClusterActivity:
    """What advice on failures of a cluster reads of it."""
    span = max(policy.storm.window_minutes, policy.limits.rate_minutes)
    return ClusterActivity(work.leases.acted(cluster, now - timedelta(minutes=span)), work.storms.held(cluster))


def gather_facts(
    work: UnitOfWork,
    subjects: Sequence[DiagnosedAttempt],
    *,
    kin: LineageAssignment,
    histories: LineageHistories,
    things: Mapping[int, tuple[SharedResource, ...]],
    incidents: IncidentAssignment,
    success_rates: SuccessRates,
    marks: Mapping[str, tuple[Mark, str, datetime]],
    policy: Policy,
    now: datetime,
) -> dict[int, Facts]:
    """What is known beside verdict and job of each subject, by attempt id."""
    turned = work.kill_switch.get()
    switch = SwitchState(turned.stopped, turned.by, turned.at, turned.reason)
    clusters = {one.event.cluster for one in subjects}
    near = {cluster: cluster_activity(work, cluster, policy.effective(cluster=cluster), now) for cluster in clusters}
    suspicion = _suspicion(work, subjects)

    @cache
    def rules(cluster: str, queue: str | None, team: str | None) -> tuple[Policy, datetime, datetime]:
        own = policy.effective(cluster=cluster, queue=queue, team=team)
        storm, rate = timedelta(minutes=own.storm.window_minutes), timedelta(minutes=own.limits.rate_minutes)
        return own, now - storm, now - rate

    found: dict[int, Facts] = {}
    for one in subjects:
        event, cause = one.event, one.verdict.cause
        own, storm_since, rate_since = rules(event.cluster, event.queue, event.team)
        thing = storm_resource(things[one.attempt_id])
        lineage = histories.of.get(one.attempt_id, Lineage())
        known = suspicion[event.cluster]
        suspected = {node: known[node] for node in event.nodes if node in known} if known else {}
        mark = marks.get(kin.of[one.attempt_id].lineage)
        facts = event_facts.facts_of(
            event,
            now,
            own,
            lineage=lineage,
            history=success_rates.history(event.cluster, cause, policy.version),
            suspicion=suspected,
            incident=_incident(one, incidents.by_attempt.get(one.attempt_id), own, suspected),
            storm=near[event.cluster].storm(storm_key(event.cluster, cause, thing), cause, thing, storm_since),
            rate=near[event.cluster].rate(event.user, rate_since),
            switch=switch,
            dependents=dependents(event),
        )
        if mark is not None and mark[0] == "never":
            facts = replace(facts, opt_in=OptIn("never", f"{mark[1]} said never"))
        found[one.attempt_id] = facts
    return found


def dependents(event: JobCompletion) -> tuple[str, ...]:
    """Jobs that wait on this one, where the event tells them (`dependents`: a list of job ids)."""
    told = (event.model_extra or {}).get("dependents")
    if not isinstance(told, list | tuple):
        return ()
    return tuple(str(one)[:200] for one in told[:DEPENDENTS_SHOWN] if isinstance(one, str | int))


def _suspicion(work: UnitOfWork, subjects: Sequence[DiagnosedAttempt]) -> dict[str, dict[str, Suspicion]]:
    """Of the nodes of failures that somebody but the user can mend; elsewhere it decides nothing."""
    wanted: dict[str, set[str]] = {one.event.cluster: set() for one in subjects}
    for one in subjects:
        if one.verdict.side != "user":
            wanted[one.event.cluster].update(one.event.nodes)
    found: dict[str, dict[str, Suspicion]] = {}
    for cluster, names in wanted.items():
        known = work.suspicion.of(cluster, names) if names else {}
        found[cluster] = {
            node: Suspicion(one.rate_ratio, one.low, one.high, one.exposure_h, one.failures)
            for node, one in known.items()
        }
    return found


def _incident(
    one: DiagnosedAttempt, incident: Incident | None, policy: Policy, suspicion: Mapping[str, Suspicion]
) -> OpenIncident | None:
    """What holds this job; an incident of one node holds nobody who leaves that node out."""
    if incident is None:
        return None
    if incident.kind == "node":
        left_out = node_exclusion.nodes_to_exclude(one.verdict, one.event.facts(), suspicion, policy.suspicion)
        if incident.value in left_out:
            return None
    return OpenIncident(
        id=incident.id,
        key=incident.key,
        opened_at=incident.opened_at,
        jobs=incident.jobs,
        users=incident.users,
        state=incident.state,
    )
