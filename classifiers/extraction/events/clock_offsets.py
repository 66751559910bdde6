"""Clocks that are set otherwise, where an event says by how much."""

import re
from collections.abc import Iterable
from typing import Final

from classifiers.contracts import NodeEvent

Reporter = tuple[str | None, str | None]
"""A node and the source of its events, such as its management controller: what has a clock of its own."""

_BY: Final = r"(?P<{0}>\d{{1,7}}(?:\.\d{{1,6}})?) ?(?P<{1}>s|sec|seconds?|min|minutes?|h|hours?)\b"
_OFFSET: Final = re.compile(
    rf"(?i)\bclock\b[^\n]{{0,40}}?\b{_BY.format('first', 'unit')} {{1,3}}(?:too )?(?P<way>ahead|fast|behind|slow)\b"
    r"|\bclock\b[^\n]{0,30}?\b(?P<way_first>ahead|fast|behind|slow)\b[^\n]{0,20}?"
    rf"\b{_BY.format('second', 'unit_last')}"
)
_RANGE: Final = 300
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0}
_AHEAD: Final = frozenset({"ahead", "fast"})


def clock_offsets(events: Iterable[NodeEvent]) -> dict[Reporter, float]:
    """By how many seconds the clocks of nodes and their controllers are ahead, where an event of them says so."""
    found: dict[Reporter, float] = {}
    for one in events:
        if "clock" not in one.text and "Clock" not in one.text:
            continue
        hit = _OFFSET.search(one.text, 0, _RANGE)
        if hit is not None:
            seconds = float(hit["first"] or hit["second"]) * _UNITS[(hit["unit"] or hit["unit_last"])[0].lower()]
            is_ahead = (hit["way"] or hit["way_first"]).lower() in _AHEAD
            found[one.node, one.source] = seconds if is_ahead else -seconds
    return found
