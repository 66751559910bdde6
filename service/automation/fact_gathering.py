"""Gathers the facts for the advice on a batch of failures, with a fixed number of queries for the whole batch."""

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
    Facts,
    Lineage,
    OpenIncident,
    OptIn,
    Suspicion,
    SwitchState,
)
from service.recommend.policy import Policy
from service.recommend.recent_activity import ClusterActivity, storm_key
from service.resubmissions.records import Mark

DEPENDENTS_SHOWN = 20


def cluster_activity(work: UnitOfWork, cluster: str, policy: Policy, now: datetime) -> ClusterActivity:
    """The recent activity of a cluster, as far back as the policy's windows reach."""
    span = max(policy.storm.window_minutes, policy.limits.rate_minutes)
    since = now - timedelta(minutes=span)
    return ClusterActivity(work.leases.recent_resubmits(cluster, since), work.storms.held(cluster))


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What is known of the attempts of a batch before their other facts are read.

    Attributes:
        lineages: the lineage of each attempt.
        histories: the earlier attempts of each lineage.
        resources: the shared resources of each attempt, by attempt id.
        incidents: the incident of each attempt.
        success_rates: of earlier resubmits.
        marks: of persons, by lineage: the mark, by whom, and when.
    """

    lineages: LineageAssignment
    histories: LineageHistories
    resources: Mapping[int, tuple[SharedResource, ...]]
    incidents: IncidentAssignment
    success_rates: SuccessRates
    marks: Mapping[str, tuple[Mark, str, datetime]]


def gather_facts(
    work: UnitOfWork, attempts: Sequence[DiagnosedAttempt], known: BatchFacts, *, policy: Policy, now: datetime
) -> dict[int, Facts]:
    """The facts of each attempt besides its verdict and job, by attempt id."""
    position = work.kill_switch.get()
    switch = SwitchState(position.stopped, position.by, position.at, position.reason)
    clusters = {one.event.cluster for one in attempts}
    activity = {
        cluster: cluster_activity(work, cluster, policy.effective(cluster=cluster), now) for cluster in clusters
    }
    suspicion = _suspicion(work, attempts)

    @cache
    def windows(cluster: str, queue: str | None, team: str | None) -> tuple[Policy, datetime, datetime]:
        effective = policy.effective(cluster=cluster, queue=queue, team=team)
        storm_window = timedelta(minutes=effective.storm.window_minutes)
        return effective, now - storm_window, now - timedelta(minutes=effective.limits.rate_minutes)

    found: dict[int, Facts] = {}
    for one in attempts:
        event, cause = one.event, one.verdict.cause
        effective, storm_since, rate_since = windows(event.cluster, event.queue, event.team)
        resource = storm_resource(known.resources[one.attempt_id])
        on_cluster = suspicion[event.cluster]
        suspected = {node: on_cluster[node] for node in event.nodes if node in on_cluster} if on_cluster else {}
        nearby = activity[event.cluster]
        facts = event_facts.facts_of(
            event,
            now,
            effective,
            lineage=known.histories.by_attempt.get(one.attempt_id, Lineage()),
            history=known.success_rates.history(event.cluster, cause, policy.version),
            suspicion=suspected,
            incident=_open_incident(one, known.incidents.by_attempt.get(one.attempt_id), effective, suspected),
            storm=nearby.storm(storm_key(event.cluster, cause, resource), cause, resource, storm_since),
            rate=nearby.rate(event.user, rate_since),
            switch=switch,
            dependents=dependents(event),
        )
        mark = known.marks.get(known.lineages.by_attempt[one.attempt_id].lineage)
        if mark is not None and mark[0] == "never":
            facts = replace(facts, opt_in=OptIn("never", f"excluded by {mark[1]}"))
        found[one.attempt_id] = facts
    return found


def dependents(event: JobCompletion) -> tuple[str, ...]:
    """Jobs that wait for this one, from the event's field `dependents` (a list of job ids)."""
    job_ids = (event.model_extra or {}).get("dependents")
    if not isinstance(job_ids, list | tuple):
        return ()
    return tuple(str(job_id)[:200] for job_id in job_ids[:DEPENDENTS_SHOWN] if isinstance(job_id, str | int))


def _suspicion(work: UnitOfWork, attempts: Sequence[DiagnosedAttempt]) -> dict[str, dict[str, Suspicion]]:
    """The suspicion of the nodes of platform-side failures; for user-side failures it decides nothing."""
    nodes: dict[str, set[str]] = {one.event.cluster: set() for one in attempts}
    for one in attempts:
        if one.verdict.side != "user":
            nodes[one.event.cluster].update(one.event.nodes)
    found: dict[str, dict[str, Suspicion]] = {}
    for cluster, names in nodes.items():
        stored = work.suspicion.of(cluster, names) if names else {}
        found[cluster] = {
            node: Suspicion(one.rate_ratio, one.low, one.high, one.exposure_h, one.failures)
            for node, one in stored.items()
        }
    return found


def _open_incident(
    attempt: DiagnosedAttempt, incident: Incident | None, policy: Policy, suspicion: Mapping[str, Suspicion]
) -> OpenIncident | None:
    """The incident that holds this job; an incident of one node does not hold a job that excludes the node."""
    if incident is None:
        return None
    if incident.kind == "node":
        excluded = node_exclusion.nodes_to_exclude(attempt.verdict, attempt.event.facts(), suspicion, policy.suspicion)
        if incident.value in excluded:
            return None
    return OpenIncident(
        id=incident.id,
        key=incident.key,
        opened_at=incident.opened_at,
        jobs=incident.jobs,
        users=incident.users,
        state=incident.state,
    )
