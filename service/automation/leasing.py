"""Leases requests to hooks. Whether a request may start is decided in the transaction that leases it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from service.automation import notifications
from service.automation.fact_gathering import cluster_activity
from service.clock import Clock
from service.db.session import Store, UnitOfWork
from service.incidents.records import Incident
from service.recommend import recent_activity
from service.recommend.incident_rules import choose_probe
from service.recommend.policy import Policy
from service.recommend.recent_activity import ClusterActivity, storm_key
from service.resubmissions.records import Lease, RecentResubmit, StoredRequest

# Candidates per lease. Those that an incident or storm holds are put on hold, so that the next lease sees others.
CANDIDATES = 500


@dataclass(slots=True)
class _Selection:
    """The requests selected for one lease call, and what limits them. `capacity`: how many may start now."""

    work: UnitOfWork
    cluster: str
    now: datetime
    policy: Policy
    incidents: dict[str, Incident]
    activity: ClusterActivity
    capacity: int
    requests: list[StoredRequest] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether no further request may start."""
        return len(self.requests) >= self.capacity

    def add(self, request: StoredRequest) -> None:
        """Select a request and count it as a resubmit."""
        self.requests.append(request)
        started = RecentResubmit(request.id, request.cause, request.resource, request.user, self.now, None)
        # A request whose lease expired and that is leased again is not another resubmit.
        others = [one for one in self.activity.resubmits if one.id != request.id]
        self.activity = ClusterActivity([*others, started], self.activity.storms)

    def user_below_limit(self, user: str) -> bool:
        """Whether the rate limit of a user allows another resubmit."""
        limits = self.policy.limits
        count = self.activity.rate(user, self.now - timedelta(minutes=limits.rate_minutes)).user
        return count < limits.rate_per_user


def lease(
    store: Store, policy: Policy, clock: Clock, *, hook: str, cluster: str, limit: int, seconds: float
) -> list[Lease]:
    """Lease the requests that may start now to a hook; none while automation is stopped.

    Checked in this transaction: the kill switch, open incidents and their probes, storms, the rate limits of the
    cluster and of each user, and expiry.
    """
    with store.unit_of_work() as work:
        if work.kill_switch.get_locked().stopped:
            return []
        work.leases.lock_cluster(cluster)
        now = clock.now()
        effective = policy.effective(cluster=cluster)
        activity = cluster_activity(work, cluster, effective, now)
        rate = activity.rate(None, now - timedelta(minutes=effective.limits.rate_minutes))
        incidents = {incident.key: incident for incident in work.incidents.opened(cluster)}
        capacity = min(limit, effective.limits.rate_per_cluster - rate.cluster)
        selection = _Selection(work, cluster, now, effective, incidents, activity, capacity)
        if capacity > 0:
            _select_probes(selection)
            _select_trials(selection)
            _select_due(selection)
        return work.leases.grant(selection.requests, hook, seconds)


def _select_due(selection: _Selection) -> None:
    # Users at their limit are excluded in the query, so that their waiting requests do not block those of others.
    users = {one.user for one in selection.activity.resubmits if one.user is not None}
    paused = [user for user in users if not selection.user_below_limit(user)]
    for request in selection.work.leases.due(selection.cluster, limit=CANDIDATES, paused_users=paused):
        if selection.full:
            return
        incident = next((selection.incidents[key] for key in request.keys if key in selection.incidents), None)
        is_probe = incident is not None and incident.probe_row == request.id
        automatic = request.origin == "policy" and not is_probe
        if automatic and incident is not None and not _avoids(request, incident):
            _hold(selection, request, "incident", incident)
        elif automatic and _storm_holds(selection, request):
            _hold(selection, request, "storm", None)
        elif request.origin != "policy" or request.user is None or selection.user_below_limit(request.user):
            selection.add(request)


def _select_probes(selection: _Selection) -> None:
    """Select one probe of each incident whose probe is due."""
    work = selection.work
    for incident in sorted(selection.incidents.values(), key=lambda one: one.id):
        due = incident.probe_at is not None and incident.probe_at <= selection.now
        if incident.by_hand or incident.state != "holding" or not due or selection.full:
            continue
        locked = work.incidents.get_locked(incident.id)
        if locked.state != "holding" or locked.by_hand or locked.probe_row is not None:
            continue
        held = work.leases.held_by(selection.cluster, "incident", incident_id=incident.id, limit=CANDIDATES)
        chosen = choose_probe([request.lineage for request in held], work.leases.probed_lineages(incident.id))
        if chosen is None:
            continue
        probe = held[chosen]
        work.incidents.change(incident.id, state="probing", probe_id=probe.id, probes=locked.probes + 1)
        text = f"job {probe.job_id} is released as the probe"
        work.incidents.note(incident.id, "policy", "probe", text)
        selection.add(probe)


def _select_trials(selection: _Selection) -> None:
    """Select one trial of each key that the retry-storm limit has held long enough."""
    pause = timedelta(minutes=selection.policy.storm.half_open_minutes)
    held: Sequence[StoredRequest] | None = None
    for key, storm in sorted(selection.activity.storms.items()):
        if storm.trial is not None or selection.now - storm.held_since < pause or selection.full:
            continue
        if held is None:
            held = selection.work.leases.held_by(selection.cluster, "storm", limit=CANDIDATES)
        trial = next((one for one in held if storm_key(one.cluster, one.cause, one.resource) == key), None)
        if trial is not None:
            selection.work.storms.set_trial(key, trial.id, selection.now)
            selection.add(trial)


def _storm_holds(selection: _Selection, request: StoredRequest) -> bool:
    """Whether the retry-storm limit holds this request; from here on if the request would exceed it."""
    key = storm_key(request.cluster, request.cause, request.resource)
    storms = selection.activity.storms
    if key in storms and storms[key].trial == request.id:
        return False
    settings = selection.policy.storm
    since = selection.now - timedelta(minutes=settings.window_minutes)
    storm = selection.activity.storm(key, request.cause, request.resource, since)
    state = recent_activity.limit_state(storm, settings, selection.now)
    if state in {"many", "failing"}:
        selection.work.storms.hold(key, selection.cluster, recent_activity.why_held(storm, settings))
        held = selection.work.storms.held(selection.cluster)
        selection.activity = ClusterActivity(selection.activity.resubmits, held)
        return True
    return state in {"held", "trial"}


def _hold(selection: _Selection, request: StoredRequest, held_by: str, incident: Incident | None) -> None:
    # A request with an expired lease is held too: its holder may still answer, and the next holder checks the job.
    held = selection.work.requests.hold(
        [request.request_id],
        held_by,
        incident_id=None if incident is None else incident.id,
        leased=request.state == "leased",
    )
    why = f"held by incident {incident.id}" if incident is not None else "held by the retry-storm limit"
    selection.work.outbox.add(notifications.of_requests("resubmission.suppressed", held, why))


def _avoids(request: StoredRequest, incident: Incident) -> bool:
    """Whether a request avoids the incident: it is of one node, which the request excludes."""
    return incident.kind == "node" and incident.value in request.exclude_nodes
