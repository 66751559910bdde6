"""Counts attempts and verdicts by node and day, and computes the suspicion of each node from these counts."""

import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files

from classifiers.node_names import short_name
from service.contracts.event import FAILURE_STATUSES
from service.db.session import UnitOfWork
from service.nodes.empirical_bayes import Prior, decayed, fit, ratio
from service.nodes.records import (
    CountedAttempt,
    DaySums,
    FailureWeights,
    FleetPrior,
    FleetSettings,
    JudgedFailure,
    NodeDay,
    NodeRow,
)
from service.nodes.repository.suspicion import Key
from service.times import EPOCH, bounded

NODES_MOST = 20_000  # nodes of one job
LONGEST = timedelta(days=60)  # days of one attempt, so that a wrong clock does not flood a node with rows
DAY = timedelta(days=1)

Sums = defaultdict[tuple[str, str, int], DaySums]


def day_of(at: datetime) -> int:
    """Whole days since 1970-01-01."""
    return (at - EPOCH) // DAY


def start_of(day: int) -> datetime:
    """The start of a day."""
    return EPOCH + day * DAY


@dataclass(frozen=True, slots=True)
class Counted:
    """The result of counting: nodes with the end of their last counted failure, and new failures."""

    nodes: Mapping[Key, datetime | None]
    failures: tuple[JudgedFailure, ...]


def count(work: UnitOfWork, jobs: Collection[int], failures: Collection[int]) -> Counted:
    """Add new attempts (ids) and new or revised verdicts (ids of failures) to the days of their nodes."""
    ran = work.failure_facts.ran(jobs)
    wanted = {*failures, *(one.failure_id for one in ran if one.failure_id == one.id)}
    judged = work.failure_facts.judged({number for number in wanted if number is not None})
    before = work.failure_facts.weights([one.id for one in judged])
    keys: set[Key] = {(one.cluster, node) for one in ran for node in one.nodes[:NODES_MOST]}
    keys |= {(one.cluster, node) for one in judged for node in one.nodes[:NODES_MOST]}
    keys |= {(one.cluster, node) for one in before.values() for node in one.weights}
    repaired = work.repairs.last(keys)
    sums: Sums = defaultdict(DaySums)
    for job in ran:
        if bounded(job.ended_at) == job.ended_at:
            _exposure(job, repaired, sums)
    now: list[FailureWeights] = []
    for one in judged:
        added = node_weights(one)
        now.append(FailureWeights(one.id, one.cluster, one.ended_at, added))
        _add_weights(now[-1], 1.0, repaired, sums)
        if one.id in before:
            _add_weights(before[one.id], -1.0, repaired, sums)
    work.suspicion.add_days({key: one for key, one in sums.items() if one != DaySums()})
    changed = [one for one in now if one.weights or one.failure_id in before]
    work.failure_facts.put_weights(changed)
    last: dict[Key, datetime | None] = {(cluster, node): None for cluster, node, _ in sums}
    for job in ran:
        if job.status in FAILURE_STATUSES:
            for node in job.nodes[:NODES_MOST]:
                known = last.get((job.cluster, node))
                last[job.cluster, node] = job.ended_at if known is None else max(known, job.ended_at)
    opened = {one.id for one in ran}
    return Counted(last, tuple(one for one in judged if one.id in opened))


def _exposure(job: CountedAttempt, repaired: Mapping[Key, datetime], sums: Sums) -> None:
    failed = job.status in FAILURE_STATUSES
    for node in dict.fromkeys(job.nodes[:NODES_MOST]):
        since = repaired.get((job.cluster, node))
        if since is not None and job.ended_at <= since:
            continue
        begun = job.ended_at if job.started_at is None or job.clock_suspect else job.started_at
        begun = max(begun, job.ended_at - LONGEST)
        if since is not None:
            begun = max(begun, since)
        hours = max(0.0, (job.ended_at - begun).total_seconds() / 3_600)
        _add(sums, (job.cluster, node, day_of(job.ended_at)), DaySums(hours, 1, int(failed), 0.0))


def _add_weights(one: FailureWeights, sign: float, repaired: Mapping[Key, datetime], sums: Sums) -> None:
    for node, weight in one.weights.items():
        since = repaired.get((one.cluster, node))
        if bounded(one.ended_at) == one.ended_at and (since is None or one.ended_at > since):
            _add(sums, (one.cluster, node, day_of(one.ended_at)), DaySums(blame=sign * weight))


def _add(sums: Sums, key: tuple[str, str, int], more: DaySums) -> None:
    there = sums[key]
    sums[key] = DaySums(
        there.exposure_h + more.exposure_h,
        there.jobs + more.jobs,
        there.failures + more.failures,
        there.blame + more.blame,
    )


def refresh(
    work: UnitOfWork,
    keys: Collection[Key],
    *,
    now: datetime,
    settings: FleetSettings,
    last_failure: Mapping[Key, datetime | None] | None = None,
    last_event: Mapping[Key, datetime] | None = None,
) -> None:
    """Compute the suspicion of these nodes from their days again; visible to others after the commit."""
    if not keys:
        return
    today = day_of(now)
    days: defaultdict[Key, list[NodeDay]] = defaultdict(list)
    for day in work.suspicion.days(keys, since=today - settings.horizon_days):
        days[day.cluster, day.node].append(day)
    priors = work.suspicion.priors()
    half_life = settings.half_life / DAY
    rows = []
    for cluster, node in keys:
        own = days[cluster, node]
        stored = priors.get(cluster)
        prior = Prior() if stored is None else Prior(stored.rate, stored.shape)
        exposure = sum(day.exposure_h * decayed(today - day.day, half_life) for day in own)
        weighted_failures = max(0.0, sum(day.blame * decayed(today - day.day, half_life) for day in own))
        estimate = ratio(weighted_failures, exposure, prior)
        rows.append(
            NodeRow(
                cluster=cluster,
                node=node,
                rate_ratio=estimate.mean,
                low=estimate.low,
                high=estimate.high,
                exposure_h=exposure,
                blame=weighted_failures,
                jobs=sum(day.jobs for day in own),
                failures=sum(day.failures for day in own),
                last_failure_at=None if last_failure is None else last_failure.get((cluster, node)),
                last_event_at=None if last_event is None else last_event.get((cluster, node)),
                repaired_at=None,
                repaired_by=None,
                repair_note=None,
                computed_at=now,
            )
        )
    work.suspicion.put(rows)


def fit_priors(work: UnitOfWork, clusters: Iterable[str], *, now: datetime) -> None:
    """Fit the prior of each cluster to the current counts of its nodes."""
    for cluster in clusters:
        sums: Sequence[tuple[float, float]] = work.suspicion.sums(cluster)
        made = fit(sums)
        work.suspicion.put_prior(FleetPrior(cluster, made.rate, made.shape, len(sums), now))


@dataclass(frozen=True, slots=True)
class Weights:
    """The contents of suspicion.toml."""

    side: Mapping[str, float]
    undecided: float
    not_the_node: frozenset[str]


@cache
def weights() -> Weights:
    """The packaged weights, cached."""
    raw = tomllib.loads(files("service.nodes").joinpath("suspicion.toml").read_text(encoding="utf-8"))
    side = {name: float(value) for name, value in raw["side"].items() if name != "source"}
    return Weights(side, float(raw["undecided"]["share"]), frozenset(raw["not_the_node"]["causes"]))


def node_weights(failure: JudgedFailure) -> dict[str, float]:
    """The weight by node: all on the suspect if it is one of the job's nodes, otherwise equal shares."""
    given = weights()
    if failure.cause in given.not_the_node or not failure.nodes:
        return {}
    weight = given.side.get(failure.side, 0.0) * failure.confidence * (given.undecided if failure.abstained else 1.0)
    if weight <= 0:
        return {}
    if failure.suspect_node is not None:
        suspect = short_name(failure.suspect_node)
        named = [node for node in failure.nodes if short_name(node) == suspect]
        if named:
            return {named[0]: weight}
    nodes = tuple(dict.fromkeys(failure.nodes))
    return dict.fromkeys(nodes, weight / len(nodes))
