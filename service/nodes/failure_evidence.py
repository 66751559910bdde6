"""Reads the fleet evidence around failed attempts for a whole batch."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from classifiers.contracts import Verdict
from classifiers.fleet_evidence import evidence_weights
from classifiers.fleet_evidence.records import FleetEvidence, FleetNodeEvent, RelatedFailure
from classifiers.node_names import short_name
from classifiers.taxonomy import Side
from service.db.session import ReadSession
from service.nodes.records import JudgedFailure, StoredNodeEvent, Window

# For a job of more nodes, an earlier failure on one of them is no evidence.
NEIGHBOUR_NODES_MOST = 64
# Only this many nodes of a job are checked, so that the cost of events does not depend on the sender.
NODES_MOST = 5_000
PAIRS_MOST = 20_000
USUAL_MOST = 20
ALIKE_MOST = 12
ON_NODE_MOST = 5
# Checked at once while the batch waits; further evidence is used when the failure is reassessed.
NODES_AT_ONCE = 400
PRINTS_AT_ONCE = 100
KEPT_MOST = 40
OF_USER_MOST = 4
SURE = 0.8
DAY = timedelta(days=1)
HALF_HOUR = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """One failed attempt: where and when it ended, its user, and the result of its log."""

    cluster: str
    job_id: str
    nodes: tuple[str, ...]
    user: str | None
    ended_at: datetime
    verdict: Verdict

    @property
    def job(self) -> str:
        """The name of its job."""
        return f"{self.cluster}/{self.job_id}"


def read(reading: ReadSession, attempts: Sequence[FailedAttempt]) -> list[FleetEvidence]:
    """The evidence for each attempt, in order, including that of the other attempts.

    At most five queries, however many attempts.
    """
    if not attempts:
        return []
    events = _events(reading, attempts)
    on_nodes, alike, before = _neighbours(reading, attempts)
    own = [_as_related(one) for one in attempts]
    by_fingerprint: defaultdict[str, list[RelatedFailure]] = defaultdict(list)
    by_node: defaultdict[tuple[str, str], list[RelatedFailure]] = defaultdict(list)
    of_user: Counter[tuple[str, str | None]] = Counter()
    for cluster, other in [*((one.cluster, _related(one)) for one in (*alike, *before, *on_nodes)), *own]:
        # Limited, so that a storm in one batch does not cost quadratic time.
        alike_here = by_fingerprint[other.fingerprint]
        of_user[other.fingerprint, other.user] += 1
        if len(alike_here) < KEPT_MOST and of_user[other.fingerprint, other.user] <= OF_USER_MOST:
            alike_here.append(other)
        named = other.known_node
        if named is not None and len(by_node[cluster, short_name(named)]) < KEPT_MOST:
            by_node[cluster, short_name(named)].append(other)
    usual = _usual(before)
    out = []
    for one in attempts:
        near = [*by_fingerprint[one.verdict.fingerprint]]
        if _node_is_suspect(one):
            near += [other for node in one.nodes for other in by_node[one.cluster, short_name(node)]]
        others = tuple(other for other in {id(other): other for other in near}.values() if other.job != one.job)
        watched = one.nodes[:NODES_MOST] if events else ()
        node_events = tuple(event for node in watched for event in events.get((one.cluster, short_name(node)), ()))
        out.append(
            FleetEvidence(
                ended_at=one.ended_at,
                nodes=one.nodes,
                user=one.user,
                node_events=node_events,
                failures=others,
                usual_per_hour=usual.get(one.verdict.fingerprint, 0.0),
            )
        )
    return out


def _events(
    reading: ReadSession, attempts: Sequence[FailedAttempt]
) -> defaultdict[tuple[str, str], list[FleetNodeEvent]]:
    """Node events around the ends, by cluster and short node name; one query if there are none."""
    data = evidence_weights.load()
    before, after = timedelta(seconds=data.before_s), timedelta(seconds=data.after_s)
    found: defaultdict[tuple[str, str], list[FleetNodeEvent]] = defaultdict(list)
    if not reading.node_events.any_since(min(one.ended_at for one in attempts) - before - 30 * DAY):
        return found
    spans: dict[tuple[str, str], tuple[datetime, datetime]] = {}
    for one in attempts:
        since, until = one.ended_at - before, one.ended_at + after
        for node in one.nodes[:NODES_MOST]:
            for name in {node, short_name(node)}:
                known = spans.get((one.cluster, name))
                if known is not None:
                    spans[one.cluster, name] = (min(known[0], since), max(known[1], until))
                elif len(spans) < PAIRS_MOST:
                    spans[one.cluster, name] = (since, until)
    windows = [Window(cluster, name, *span) for (cluster, name), span in spans.items()]
    for event in reading.node_events.within(windows):
        found[event.cluster, short_name(event.node)].append(_fleet_event(event))
    return found


def _neighbours(
    reading: ReadSession, attempts: Sequence[FailedAttempt]
) -> tuple[list[JudgedFailure], list[JudgedFailure], list[JudgedFailure]]:
    """Failures on the same nodes within a day, similar ones within half an hour, and similar ones of the day before."""
    nodes: dict[tuple[str, str], tuple[datetime, datetime]] = {}
    prints: dict[str, tuple[datetime, datetime]] = {}
    frequent = Counter(one.verdict.fingerprint for one in attempts)
    chosen = {name for name, _ in frequent.most_common(PRINTS_AT_ONCE)}
    for one in sorted(attempts, key=_size):
        name = one.verdict.fingerprint
        if name in chosen:
            prints[name] = _with(prints.get(name), one.ended_at)
        if _node_is_suspect(one):
            for node in one.nodes:
                if len(nodes) < NODES_AT_ONCE or (one.cluster, node) in nodes:
                    nodes[one.cluster, node] = _with(nodes.get((one.cluster, node)), one.ended_at)
    on_nodes = [
        Window(cluster, name, first - DAY, last + HALF_HOUR) for (cluster, name), (first, last) in nodes.items()
    ]
    near = [Window("", name, first - HALF_HOUR, last + HALF_HOUR) for name, (first, last) in prints.items()]
    earlier = [Window("", name, first - DAY, first - HALF_HOUR) for name, (first, _) in prints.items()]
    facts = reading.failure_facts
    alike = facts.alike(near, each=ALIKE_MOST)
    users: defaultdict[str, set[str | None]] = defaultdict(set)
    for known in alike:
        users[known.fingerprint].add(known.user)
    for one in attempts:
        users[one.verdict.fingerprint].add(one.user)
    # The usual rate matters only if other jobs fail the same way now.
    windows_of_several = [window for window in earlier if len(users[window.name]) > 1]
    return facts.on_nodes(on_nodes, each=ON_NODE_MOST), alike, facts.alike(windows_of_several, each=USUAL_MOST)


def _size(one: FailedAttempt) -> int:
    return len(one.nodes)


def _with(span: tuple[datetime, datetime] | None, at: datetime) -> tuple[datetime, datetime]:
    return (at, at) if span is None else (min(span[0], at), max(span[1], at))


def _node_is_suspect(one: FailedAttempt) -> bool:
    """Whether earlier failures on its nodes are evidence: not for a very large job or a plain user error."""
    if not one.nodes or len(one.nodes) > NEIGHBOUR_NODES_MOST:
        return False
    return one.verdict.abstained or one.verdict.side != "user" or one.verdict.confidence < SURE


def _usual(before: Iterable[JudgedFailure]) -> dict[str, float]:
    """Failures per hour by fingerprint in the day before; if the result was cut off, estimated from their spacing."""
    times: defaultdict[str, list[datetime]] = defaultdict(list)
    for one in before:
        times[one.fingerprint].append(one.ended_at)
    out = {}
    for name, ends in times.items():
        hours = 24.0
        if len(ends) >= USUAL_MOST:
            hours = max((max(ends) - min(ends)).total_seconds() / 3_600, 1 / 60)
        out[name] = len(ends) / hours
    return out


def _fleet_event(event: StoredNodeEvent) -> FleetNodeEvent:
    return FleetNodeEvent(event.node, event.at, event.kind, event.text, event.gpu, event.resolved, event.until)


def _related(one: JudgedFailure) -> RelatedFailure:
    side: Side = one.side  # type: ignore[assignment] # one of the three in every stored row
    return RelatedFailure(
        job=f"{one.cluster}/{one.job_id}",
        at=one.ended_at,
        nodes=one.nodes,
        user=one.user,
        fingerprint=one.fingerprint,
        side=side,
        cause=one.cause,
        abstained=one.abstained,
        suspect_node=one.suspect_node,
    )


def _as_related(one: FailedAttempt) -> tuple[str, RelatedFailure]:
    verdict = one.verdict
    return one.cluster, RelatedFailure(
        job=one.job,
        at=one.ended_at,
        nodes=one.nodes,
        user=one.user,
        fingerprint=verdict.fingerprint,
        side=verdict.side,
        cause=verdict.cause,
        abstained=verdict.abstained,
        suspect_node=None if verdict.suspect is None else verdict.suspect.node,
    )
