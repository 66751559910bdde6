"""Queries about nodes, shared by pages and API."""

from dataclasses import dataclass

from classifiers.fleet_evidence import evidence_weights
from classifiers.fleet_evidence.recent_changes import CHANGE
from service.contracts.page import Page
from service.failures.records import FailureRow
from service.nodes.recent_changes import changes_before
from service.nodes.records import NodeRow, NodeSort, StoredNodeEvent
from service.times import bounded
from service.web import views
from service.web.services import Services

FAILURES_SHOWN = 20
CHANGES_SHOWN = 10
SUSPECT_FROM = 1.0  # the whole interval lies above the rate of the fleet


@dataclass(frozen=True, slots=True)
class NodeDetail:
    """One node: suspicion, events (newest first), maintenance windows, changes of the day and latest failures."""

    node: NodeRow
    events: Page[StoredNodeEvent]
    windows: tuple[StoredNodeEvent, ...]
    failures: Page[FailureRow]
    changes: tuple[StoredNodeEvent, ...] = ()


def nodes(
    services: Services,
    *,
    cluster: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
    sort: NodeSort = "-suspicion",
) -> Page[NodeRow]:
    """One page of nodes.

    Raises:
        InvalidInput: the limit or cursor is invalid.
    """
    with services.reading() as reading:
        return reading.suspicion.page(cluster=cluster, limit=limit, cursor=cursor, sort=sort)


def node(
    services: Services,
    cluster: str,
    name: str,
    *,
    limit: int = 50,
    cursor: str | None = None,
    failures: views.FailureQuery | None = None,
) -> NodeDetail:
    """One node; `limit` and `cursor` page its events.

    `failures` selects the failures that are listed, by default all; its times are those of the events too.

    Raises:
        NotFound: the node is unknown.
        InvalidInput: the limit or cursor is invalid.
    """
    with services.snapshot() as snapshot, snapshot.reading() as reading:
        row = reading.suspicion.get(cluster, name)
        wanted = failures or views.FailureQuery({"node": name, "cluster": cluster})
        span = views.failure_filter(snapshot, wanted)
        events = reading.node_events.page(cluster, name, limit=limit, cursor=cursor, since=span.since, until=span.until)
        windows = reading.node_events.windows(cluster, name, since=services.clock.now())
        [changes] = changes_before(reading, [(cluster, (name,), services.clock.now())])
        failed = views.failures(snapshot, wanted, limit=FAILURES_SHOWN)
    windows = [one for one in windows if one.kind != CHANGE]
    return NodeDetail(row, events, tuple(windows), failed, tuple(changes[:CHANGES_SHOWN]))


def changes_of_failure(services: Services, row: FailureRow) -> list[StoredNodeEvent]:
    """The changes on the nodes of a failed job and in its cluster in the day before its end, latest first."""
    with services.reading() as reading:
        [found] = changes_before(reading, [(row.cluster, row.nodes, bounded(row.ended_at))])
    return found[:CHANGES_SHOWN]


def node_status(row: NodeRow) -> str:
    """The status of a node: suspect, clear, as others, or unknown if too little ran on it."""
    if row.low > SUSPECT_FROM:
        return "suspect"
    if row.high < SUSPECT_FROM:
        return "clear"
    return "unknown" if row.blame == 0 and row.high > 2 * SUSPECT_FROM else "as others"


def kind_title(code: str) -> str:
    """The title of a kind of node event."""
    kind = evidence_weights.load().kinds.get(code)
    return code if kind is None else kind.title
