"""What pages and API show of nodes; both call these, so that they cannot say different things."""

from dataclasses import dataclass

from classifiers.relevance import evidence_weights
from service.contracts.page import Page
from service.failures.records import FailureRow
from service.nodes.records import NodeRow, NodeSort, StoredNodeEvent
from service.web import views
from service.web.services import Services

FAILURES_SHOWN = 20
SUSPECT_FROM = 1.0  # the interval lies above the fleet's own rate


@dataclass(frozen=True, slots=True)
class NodeDetail:
    """One node: its suspicion, what it said (newest first), its windows of maintenance, and what failed on it."""

    node: NodeRow
    events: Page[StoredNodeEvent]
    windows: tuple[StoredNodeEvent, ...]
    failures: Page[FailureRow]


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
        InvalidInput: a limit or cursor that is none.
    """
    with services.store.reading() as reading:
        return reading.suspicion.page(cluster=cluster, limit=limit, cursor=cursor, sort=sort)


def node(services: Services, cluster: str, name: str, *, limit: int = 50, cursor: str | None = None) -> NodeDetail:
    """One node; `limit` and `cursor` are of its events.

    Raises:
        NotFound: nothing is known of it.
        InvalidInput: a limit or cursor that is none.
    """
    with services.store.reading() as reading:
        row = reading.suspicion.get(cluster, name)
        events = reading.node_events.page(cluster, name, limit=limit, cursor=cursor)
        windows = reading.node_events.windows(cluster, name, since=services.clock.now())
    failed = views.failures(services, views.FailureQuery({"node": name, "cluster": cluster}), limit=FAILURES_SHOWN)
    return NodeDetail(row, events, tuple(windows), failed)


def node_status(row: NodeRow) -> str:
    """What the figures say, in a word: suspect, clear, as others, or unknown while little ran on it."""
    if row.low > SUSPECT_FROM:
        return "suspect"
    if row.high < SUSPECT_FROM:
        return "clear"
    return "unknown" if row.blame == 0 and row.high > 2 * SUSPECT_FROM else "as others"


def kind_title(code: str) -> str:
    """A kind of event in words."""
    kind = evidence_weights.load().kinds.get(code)
    return code if kind is None else kind.title
