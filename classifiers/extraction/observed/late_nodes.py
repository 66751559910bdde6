"""The node for which the others waited, by its own logs: its ranks were still at work when the others gave up."""

from collections.abc import Sequence
from typing import Final

from classifiers.extraction.line_attribution import LineAttribution
from classifiers.extraction.stream_reader import StreamText
from classifiers.node_names import short_name
from classifiers.relevance.event_rules import timeouts, waits

_WORKED_UNTIL_S: Final = 600.0  # before the last progress of any rank (judgement)


def late_nodes(streams: Sequence[StreamText], attributions: Sequence[LineAttribution | None]) -> frozenset[str]:
    """The short name of the one node whose logs show progress and no trouble while all others show time-outs.

    Empty where there are several, or none, or where a rank of the node waited as well.

    Args:
        streams: the texts of a case.
        attributions: who printed which line, by stream; None for a stream without text.
    """
    waiting: set[str] = set()
    working: dict[str, float] = {}
    for stream, attribution in zip(streams, attributions, strict=True):
        node = stream.source.node
        if stream.is_scheduler or attribution is None or node is None or stream.source.rank is None:
            continue
        found = {hit.id for line in stream.lines for hit in line.hits if hit.role in {"initiating", "cascade"}}
        if not found.isdisjoint(timeouts()):
            waiting.add(short_name(node))
        elif found <= waits() and (last := attribution.progress_lines.last_time()) is not None:
            working[short_name(node)] = max(last, working.get(short_name(node), last))
    if not waiting or not working:
        return frozenset()
    end = max(working.values())
    late = {node for node, last in working.items() if node not in waiting and last >= end - _WORKED_UNTIL_S}
    return frozenset(late) if len(late) == 1 else frozenset()
