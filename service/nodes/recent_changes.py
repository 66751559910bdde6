"""Reads the changes shortly before the ends of failed attempts."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from classifiers.fleet_evidence.recent_changes import ALL_NODES, BEFORE_S
from classifiers.node_names import short_name
from service.db.session import ReadSession
from service.nodes.records import StoredNodeEvent, Window

NODES_MOST = 64  # of a job; a change of many nodes is found on the first of them
_BEFORE = timedelta(seconds=BEFORE_S)

AttemptEnd = tuple[str, Sequence[str], datetime]
"""Cluster, nodes and end of an attempt."""


def changes_before(reading: ReadSession, attempts: Sequence[AttemptEnd]) -> list[list[StoredNodeEvent]]:
    """The changes on the nodes of each attempt and in its cluster in the day before its end, latest first.

    At most two queries, however many attempts.
    """
    if not attempts or not reading.node_events.any_since(min(ended for _, _, ended in attempts) - _BEFORE):
        return [[] for _ in attempts]
    spans: dict[tuple[str, str], tuple[datetime, datetime]] = {}
    for cluster, nodes, ended in attempts:
        for name in _names(nodes):
            since, until = spans.get((cluster, name), (ended - _BEFORE, ended))
            spans[cluster, name] = (min(since, ended - _BEFORE), max(until, ended))
    found: defaultdict[tuple[str, str], list[StoredNodeEvent]] = defaultdict(list)
    for event in reading.node_events.changes([Window(cluster, name, *span) for (cluster, name), span in spans.items()]):
        found[event.cluster, event.node].append(event)
    return [
        sorted(
            (one for name in _names(nodes) for one in found[cluster, name] if ended - _BEFORE <= one.at <= ended),
            key=_latest_first,
        )
        for cluster, nodes, ended in attempts
    ]


def _names(nodes: Sequence[str]) -> list[str]:
    """The names that changes of these nodes may have; of all nodes first."""
    names = (name for node in nodes[:NODES_MOST] for name in (node, short_name(node)))
    return list(dict.fromkeys((ALL_NODES, *names)))


def _latest_first(one: StoredNodeEvent) -> tuple[float, int]:
    return -one.at.timestamp(), one.id
