"""Finds the catalogue entries that match the node events of a case."""

from collections.abc import Sequence
from functools import cache

from classifiers.contracts import RawCase
from classifiers.extraction.events.memory_tables import holds_more_than_killed, is_held_by_stranger
from classifiers.extraction.events.shared_servers import lost_by_several
from classifiers.extraction.evidence_items import NODE, EvidenceItem, NodeHit
from classifiers.extraction.line_headers import is_information_of_daemon
from classifiers.extraction.line_roles import applicable_hits
from classifiers.extraction.onset import Onset
from classifiers.extraction.scan import ScannedLine
from classifiers.extraction.stream_reader import StreamText
from classifiers.fleet_evidence.recent_changes import CHANGE, NO_CAUSE
from classifiers.observation_names import MEMORY_HELD_BY_OTHERS, SERVER_LOST_BY_SEVERAL
from classifiers.relevance.entry_groups import node_operations
from classifiers.relevance.event_rules import ANY_CHANGE, CHANGES, MANY_AFFECTED, NAMED_OBJECT
from classifiers.relevance.own_names import is_of_foreign_pod
from classifiers.signatures import Signature


def find_event_hits(
    raw: RawCase,
    streams: Sequence[StreamText],
    node_events: Sequence[tuple[str, ScannedLine | None]],
    present: frozenset[str],
    position: int,
) -> tuple[list[NodeHit], list[EvidenceItem]]:
    """Return the node events that the catalogue knows, and the changes that it does not, which are set aside.

    Args:
        raw: the case.
        streams: its log streams and, last, the scheduler's message.
        node_events: the text of each node event, and what the scanner found in it, None without a hit.
        present: ids of all entries that match a line of the logs or of the scheduler's message.
        position: of the first hit in the order of reading: how many items were found in the logs.
    """
    hits_of_events: list[NodeHit] = []
    set_aside: list[EvidenceItem] = []
    by_node = _events_by_node(raw, node_events)
    entries_of_node = cache(lambda node: present | _entries_of_node(raw, streams, by_node[node]))
    shared = lost_by_several(raw.node_events, node_events)
    for index, (event, (text, line)) in enumerate(zip(raw.node_events, node_events, strict=True)):
        hits: Sequence[Signature] = () if line is None else line.hits
        if line is not None and any(hit.is_conditional for hit in hits):
            known = entries_of_node(event.node).union([hit.id for hit in hits])
            if index in shared:
                known |= {SERVER_LOST_BY_SEVERAL}
            hits = applicable_hits(line, raw, NODE, known)
        hits = _of_one_kind(hits, text, is_change=event.source == CHANGE) if hits else hits
        if event.source == CHANGE and not hits:
            set_aside.append(
                EvidenceItem(text, "context", Onset.NEUTRAL, len(streams), index, index, None, set_aside=NO_CAUSE)
            )
        if line is None or not hits:
            continue
        at = position + len(hits_of_events)
        hits_of_events.append(NodeHit(index, at, text, event.node, tuple(hits), line.error_words))
    return hits_of_events, set_aside


def _events_by_node(
    raw: RawCase, node_events: Sequence[tuple[str, ScannedLine | None]]
) -> dict[str | None, list[tuple[str, ScannedLine | None]]]:
    """The texts of the events of each node, and what was found in them."""
    by_node: dict[str | None, list[tuple[str, ScannedLine | None]]] = {}
    for event, one in zip(raw.node_events, node_events, strict=True):
        by_node.setdefault(event.node, []).append(one)
    return by_node


def _entries_of_node(
    raw: RawCase, streams: Sequence[StreamText], own: Sequence[tuple[str, ScannedLine | None]]
) -> frozenset[str]:
    """Ids of all entries that match an event of a node.

    Args:
        raw: the case.
        streams: its log streams.
        own: the texts of the node's events, and what was found in them.
    """
    of_streams = [one.text for one in streams]
    job = [*of_streams, raw.job.name or ""]
    known = [line for text, line in own if line is not None and not is_of_foreign_pod(text, job)]
    found = frozenset([hit.id for line in known for hit in line.hits])
    texts = [text for text, _ in own]
    is_others = holds_more_than_killed(texts) or is_held_by_stranger(texts, of_streams)
    return found | {MEMORY_HELD_BY_OTHERS} if is_others else found


def _of_one_kind(hits: Sequence[Signature], text: str, *, is_change: bool) -> Sequence[Signature]:
    """Of the entries that match an event, those of changes or the others: what reports trouble reports no change.

    General words of failure count where no other entry matches. A change that says what was done to nodes or jobs is an
    event of that kind. What a daemon logs as information of its own work is no record of a change.
    """
    hits = tuple([hit for hit in hits if hit.id != NAMED_OBJECT]) or hits
    if is_change:
        done = tuple(hit for hit in hits if hit.id in node_operations())
        return done or tuple(hit for hit in hits if hit.id.startswith(CHANGES))
    trouble = tuple([hit for hit in hits if not hit.id.startswith(CHANGES)])
    trouble = tuple([hit for hit in trouble if hit.id == MANY_AFFECTED]) or trouble
    if trouble or not hits or is_information_of_daemon(text):
        return trouble
    return tuple(hit for hit in hits if hit.id != ANY_CHANGE)
