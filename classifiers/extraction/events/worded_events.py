"""Node events that no entry of the catalogue matches, with the entry that their words speak for."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from classifiers.contracts import RawCase
from classifiers.extraction.evidence_items import NodeHit
from classifiers.extraction.line_headers import is_information_of_daemon
from classifiers.extraction.scan import ScannedLine
from classifiers.relevance.event_rules import CHANGES
from classifiers.relevance.recent_changes import CHANGE
from classifiers.signatures import Signature

EventEntry = Callable[[str, str | None], Signature | None]
"""Of an event's text and its source, the catalogue entry that it speaks for, None if none."""

# Judgement: so many events are read, those nearest to the job's end: what began a failure is seldom further away, and
# each costs the time of its words.
MOST_READ: Final = 40
_AFTERWARDS: Final = timedelta(minutes=15)  # monitors report with delay (judgement)


def hits_by_words(
    raw: RawCase, events: list[tuple[str, ScannedLine | None]], entry_of: EventEntry, position: int
) -> list[NodeHit]:
    """The events that no entry matches and whose words speak for one.

    Args:
        raw: the case.
        events: the text of each node event, and what the scanner found in it; what the words speak for is added.
        entry_of: finds the entry that the words of an event speak for.
        position: the place of the first one among the evidence of the case.
    """
    found: list[NodeHit] = []
    for index in _nearest(raw, events):
        event, (text, line) = raw.node_events[index], events[index]
        entry = None if is_information_of_daemon(text) else entry_of(text, event.source)
        if entry is not None:
            words = line.error_words if line is not None else frozenset()
            events[index] = text, ScannedLine(0, 1, text, (entry,), words)
            found.append(NodeHit(index, position + len(found), text, event.node, (entry,), words))
    return found


def _nearest(raw: RawCase, events: Sequence[tuple[str, ScannedLine | None]]) -> list[int]:
    """Places of the events without an entry that are nearest to the job's end, in order."""
    unknown = [
        index
        for index, (one, (_, line)) in enumerate(zip(raw.node_events, events, strict=True))
        if (line is None or all(hit.id.startswith(CHANGES) for hit in line.hits)) and one.source != CHANGE
    ]
    end = raw.job.ended_at
    if end is None or len(unknown) <= MOST_READ:
        return unknown
    latest = end + _AFTERWARDS

    def distance(index: int) -> timedelta:
        at = raw.node_events[index].at
        return timedelta() if at is None else (timedelta.max if at > latest else abs(end - at))

    return sorted(sorted(unknown, key=distance)[:MOST_READ])
