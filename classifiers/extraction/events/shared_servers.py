"""Which file servers several nodes miss at the same time: then the server is away, and no node has a fault."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from classifiers.contracts import NodeEvent
from classifiers.extraction.events.read_events import ReadEvent
from classifiers.node_names import short_name
from classifiers.relevance.event_objects import read_objects
from classifiers.relevance.event_rules import load

_RULE: Final = "file-server"
# Judgement: clients of one server notice within this time that it does not answer, in seconds.
_TOGETHER_S: Final = 600.0


def lost_by_several(events: Sequence[NodeEvent], read: Sequence[ReadEvent]) -> frozenset[int]:
    """The places of the events of nodes that report the same file server or file system at the same time.

    Args:
        events: the events of the case.
        read: what was found in each.
    """
    of_servers = _entries_of_servers()
    reports: list[tuple[float, str, int]] = []
    for index, (event, one) in enumerate(zip(events, read, strict=True)):
        if not one.hits or of_servers.isdisjoint([hit.id for hit in one.hits]):
            continue
        if event.node is not None and event.at is not None:
            reports.append((event.at.timestamp(), short_name(event.node), index))
    # What they name is read only of those next to which another node reports any server.
    together = _together(sorted(reports))
    by_server: dict[str, list[tuple[float, str, int]]] = {}
    for report in reports:
        if report[2] in together:
            objects = read_objects(read[report[2]].text)
            addresses = {name for name in objects.specific_names if name[:1].isdigit()}
            for name in objects.names | objects.filesystems | addresses:
                by_server.setdefault(name, []).append(report)
    return frozenset(index for seen in by_server.values() for index in _together(sorted(seen)))


@cache
def _entries_of_servers() -> frozenset[str]:
    """Ids of the catalogue entries of a file server or file system that does not answer."""
    return frozenset([entry for entry, rule in load().items() if rule.id == _RULE])


def _together(seen: Sequence[tuple[float, str, int]]) -> set[int]:
    """The places of the reports, in order of time, next to which another node reports the same."""
    shared: set[int] = set()
    for ordered in (seen, seen[::-1]):
        last: tuple[float, str] | None = None
        other: tuple[float, str] | None = None  # the last one of another node than the last one
        for time, node, index in ordered:
            if last is not None and last[1] != node:
                other = last
            last = (time, node)
            if other is not None and abs(time - other[0]) <= _TOGETHER_S:
                shared.add(index)
    return shared
