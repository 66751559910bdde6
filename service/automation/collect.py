"""The facts of a batch of failures, by a handful of reads however many they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from service.automation.figures import Figures
from service.automation.fold import Folded
from service.automation.kin import Histories, Kin
from service.automation.resources import Shared, resource
from service.automation.subjects import Subject
from service.events import JobCompletion
from service.recommend import gather, nodes
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
from service.store.automation_records import Acted, Incident, Mark, StormHeld
from service.store.session import UnitOfWork

_HELPED = frozenset({"succeeded", "got_past"})
_FAILED = frozenset({"failed_same", "failed_otherwise"})
DEPENDENTS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Around:
    """What is known around the jobs of one cluster: what was let go lately, and what the brake holds."""

    acted: Sequence[Acted]
    storms: Mapping[str, StormHeld]

    def storm(self, key: str, cause: str, thing: str, since: datetime) -> StormState:
        """The state of one key of the brake."""
        held = self.storms.get(key)
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
        mine = [one for one in self.acted if one.at > since]
        return ActionRate(len(mine), sum(one.user == user for one in mine) if user is not None else 0)


def storm_key(cluster: str, cause: str, thing: str) -> str:
    """What the brake counts by."""
    return f"{cause}|{cluster}|{thing}"


def around(work: UnitOfWork, cluster: str, policy: Policy, now: datetime) -> Around:
    """What advice on failures of a cluster reads of it."""
    span = max(policy.storm.window_minutes, policy.limits.rate_minutes)
    return Around(work.leases.acted(cluster, now - timedelta(minutes=span)), work.storms.held(cluster))


def collect(
    work: UnitOfWork,
    subjects: Sequence[Subject],
    *,
    kin: Kin,
    histories: Histories,
    things: Mapping[int, tuple[Shared, ...]],
    folded: Folded,
    figures: Figures,
    marks: Mapping[str, tuple[Mark, str, datetime]],
    policy: Policy,
    now: datetime,
) -> dict[int, Facts]:
    """What is known beside verdict and job of each subject, by attempt id."""
    turned = work.switch.get()
    switch = SwitchState(turned.stopped, turned.by, turned.at, turned.reason)
    clusters = {one.event.cluster for one in subjects}
    near = {cluster: around(work, cluster, policy.effective(cluster=cluster), now) for cluster in clusters}
    suspicion = _suspicion(work, subjects)
    found: dict[int, Facts] = {}
    for one in subjects:
        event, cause = one.event, one.verdict.cause
        own = policy.effective(cluster=event.cluster, queue=event.queue, team=event.team)
        base = gather.facts_of(event, now, own)
        thing = resource(things[one.attempt_id])
        lineage = histories.of.get(one.attempt_id, Lineage())
        suspected = {node: suspicion[event.cluster][node] for node in event.nodes if node in suspicion[event.cluster]}
        mark = marks.get(kin.of[one.attempt_id].lineage)
        found[one.attempt_id] = replace(
            base,
            lineage=lineage,
            history=figures.history(event.cluster, cause, policy.version),
            suspicion=suspected,
            incident=_incident(one, folded.of.get(one.attempt_id), own, suspected),
            storm=near[event.cluster].storm(
                storm_key(event.cluster, cause, thing), cause, thing, now - timedelta(minutes=own.storm.window_minutes)
            ),
            rate=near[event.cluster].rate(event.user, now - timedelta(minutes=own.limits.rate_minutes)),
            switch=switch,
            opt_in=OptIn("never", f"{mark[1]} said never") if mark is not None and mark[0] == "never" else base.opt_in,
            dependents=base.dependents or dependents(event),
        )
    return found


def dependents(event: JobCompletion) -> tuple[str, ...]:
    """Jobs that wait on this one, where the event tells them (`dependents`: a list of job ids)."""
    told = (event.model_extra or {}).get("dependents")
    if not isinstance(told, list | tuple):
        return ()
    return tuple(str(one)[:200] for one in told[:DEPENDENTS_SHOWN] if isinstance(one, str | int))


def _suspicion(work: UnitOfWork, subjects: Sequence[Subject]) -> dict[str, dict[str, Suspicion]]:
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
    one: Subject, incident: Incident | None, policy: Policy, suspicion: Mapping[str, Suspicion]
) -> OpenIncident | None:
    """What holds this job; an incident of one node holds nobody who leaves that node out."""
    if incident is None:
        return None
    if incident.kind == "node":
        left_out = nodes.to_leave_out(one.verdict, one.event.facts(), suspicion, policy.suspicion)
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
