"""Node events as they are read, and the catalogue entries of each and of all events of a node.

What a text says by itself is found once, however many cases have the event.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from classifiers.contracts import RawCase
from classifiers.extraction.clocks import clock_ahead
from classifiers.extraction.events.memory_tables import KILLED_WORDS, holds_more_than_killed, is_held_by_stranger
from classifiers.extraction.evidence_items import NODE, STRENGTH_ORDER, EvidenceItem, strongest
from classifiers.extraction.onset import Onset
from classifiers.extraction.scan import ScannedLine
from classifiers.extraction.stream_reader import StreamText
from classifiers.observation_names import MEMORY_HELD_BY_OTHERS
from classifiers.relevance.entry_groups import node_operations
from classifiers.relevance.event_rules import ANY_CHANGE, CHANGES, MANY_AFFECTED, NAMED_OBJECT
from classifiers.relevance.event_times import blocked_for
from classifiers.relevance.own_names import is_of_foreign_pod
from classifiers.signatures import Signature

_LIKELY: Final = 0.2  # judgement: the weight from which an entry of an event stands for a cause
_NO_CAUSES: Final[frozenset[str]] = frozenset()
_LIKELY_CAUSES: Final[dict[str, tuple[Mapping[str, float], frozenset[str]]]] = {}  # by entry, with its weights
_OF_EVENTS: Final = frozenset({NODE})


class EventEntries:
    """The catalogue entries that match an event, and what they say together. Not a data class, as `ReadEvent`.

    Attributes:
        hits: the entries.
        ids: the ids of those that say something of the event.
        causes: the causes of the platform's sides for which they speak.
        seriousness: how serious they are, the least number first.
    """

    __slots__ = ("causes", "hits", "ids", "seriousness")

    def __init__(self, hits: tuple[Signature, ...]) -> None:
        self.hits = hits
        # An entry that is only context says nothing of an event since another one explains its words (`unless`).
        self.ids: tuple[str, ...] = tuple([hit.id for hit in hits if not (hit.role == "context" and hit.unless)])
        self.causes = _likely_causes(hits)
        best = strongest(hits)
        is_beginning = best is not None and best.role == "initiating"
        self.seriousness = STRENGTH_ORDER[best.strength] if is_beginning and best is not None else len(STRENGTH_ORDER)


class ReadEvent:
    """The text of an event and what was found in it.

    Not a data class: hundreds are made for a case, and a constructor of its own is compiled.

    Attributes:
        text: the text, without terminal colours and line breaks.
        line: what the scanner found in it, None without a hit.
        hits: the catalogue entries that match it, under whatever conditions.
        ahead_s: by how many seconds it says that a clock is ahead, None if it does not.
        blocked_s: for how many seconds something stood still when it was reported.
    """

    __slots__ = (
        "_entries",
        "_is_conditional",
        "ahead_s",
        "blocked_s",
        "hits",
        "line",
        "text",
    )

    def __init__(self, given: str, text: str, line: ScannedLine | None) -> None:
        self.text = text
        self.line = line
        self.hits: tuple[Signature, ...] = () if line is None else line.hits
        self.ahead_s = clock_ahead(given)
        self.blocked_s = blocked_for(given)
        self._is_conditional: bool | None = None  # until it is asked for, as the other
        self._entries: EventEntries | None = None

    @property
    def is_conditional(self) -> bool:
        """Whether the job or the rest of the case decides which of its entries count."""
        if self._is_conditional is None:
            self._is_conditional = any(map(_is_conditional, self.hits))
        return self._is_conditional

    @property
    def entries(self) -> EventEntries:
        """Its entries as trouble of a node, where nothing else decides which of them count."""
        if self._entries is None:
            self._entries = EventEntries(of_one_kind(self.hits, is_change=False))
        return self._entries


class NodeHit:
    """A node event that the catalogue knows, before it is judged. Most of them become no item.

    Not a data class, as `ReadEvent`.

    Attributes:
        index: its place among the events of the case.
        position: as of the item.
        event: the event.
        node: its node, None if unknown.
        entries: the catalogue entries that match it and count in the case.
    """

    __slots__ = ("entries", "event", "index", "node", "position")

    def __init__(self, index: int, position: int, event: ReadEvent, node: str | None, entries: EventEntries) -> None:
        self.index = index
        self.position = position
        self.event = event
        self.node = node
        self.entries = entries

    def item(self, stream: int) -> EvidenceItem:
        """Its item, with the index of the text of node events; role, onset and time are found when it is judged."""
        line = self.event.line
        return EvidenceItem(
            text=self.event.text,
            role="context",
            onset=Onset.NEUTRAL,
            stream=stream,
            position=self.position,
            offset=self.index,
            line_number=None,
            node=self.node,
            hits=self.entries.hits,
            error_words=frozenset() if line is None else line.error_words,
        )


class EntriesOfNodes:
    """The entries that match events of the nodes of a case; each node is read when it is asked for first.

    Args:
        raw: the case.
        streams: its texts.
        events: its node events, in order.
        present: the entries that match a line of its texts.
    """

    def __init__(
        self, raw: RawCase, streams: Sequence[StreamText], events: Sequence[ReadEvent], present: frozenset[str]
    ) -> None:
        self._raw = raw
        self._events = events
        self._present = present
        self._texts = [one.text for one in streams]
        self._own = [*self._texts, raw.job.name or ""]
        self._by_node: dict[str | None, list[ReadEvent]] = {}
        self._of_node: dict[str | None, frozenset[str]] = {}

    def beside(self, node: str | None, hits: Sequence[Signature]) -> frozenset[str]:
        """Ids of the entries that match an event, another event of its node or a text of the case."""
        found = self._of_node.get(node)
        if found is None:
            found = self._of_node[node] = self._present | self._entries_of(self._events_of(node))
        ids = [hit.id for hit in hits]
        return found if found.issuperset(ids) else found.union(ids)

    def _events_of(self, node: str | None) -> Sequence[ReadEvent]:
        if not self._by_node:
            for event, one in zip(self._raw.node_events, self._events, strict=True):
                self._by_node.setdefault(event.node, []).append(one)
        return self._by_node[node]

    def _entries_of(self, own: Sequence[ReadEvent]) -> set[str]:
        """Ids of all entries that match an event of a node, but those of pods of other jobs."""
        found: set[str] = set()
        of_pods: list[tuple[str, list[str]]] = []
        is_killed = False
        for one in own:
            text = one.text
            is_killed = is_killed or KILLED_WORDS in text
            if one.hits:
                ids = [hit.id for hit in one.hits]
                if "pod" in text:
                    of_pods.append((text, ids))
                else:
                    found.update(ids)
        for text, ids in of_pods:  # whose pod it is takes a search of the logs
            if not found.issuperset(ids) and not is_of_foreign_pod(text, self._own):
                found.update(ids)
        if is_killed:
            texts = [one.text for one in own]
            if holds_more_than_killed(texts) or is_held_by_stranger(texts, self._texts):
                found.add(MEMORY_HELD_BY_OTHERS)
        return found


def of_one_kind(hits: tuple[Signature, ...], *, is_change: bool) -> tuple[Signature, ...]:
    """Of the entries that match an event, those of changes or the others: what reports trouble reports no change.

    General words of failure count where no other entry matches. A change that says what was done to nodes or jobs is an
    event of that kind.
    """
    if len(hits) == 1 and not is_change and not hits[0].id.startswith(CHANGES):  # most events
        return hits
    hits = tuple([hit for hit in hits if hit.id != NAMED_OBJECT]) or hits
    if is_change:
        done = tuple(hit for hit in hits if hit.id in node_operations())
        return done or tuple(hit for hit in hits if hit.id.startswith(CHANGES))
    trouble = tuple([hit for hit in hits if not hit.id.startswith(CHANGES)])
    trouble = tuple([hit for hit in trouble if hit.id == MANY_AFFECTED]) or trouble
    if trouble or not hits:
        return trouble
    return tuple(hit for hit in hits if hit.id != ANY_CHANGE)


def causes_of(hits: Iterable[Signature], least: float) -> frozenset[str]:
    """The causes for which entries speak with some weight or more."""
    return frozenset([code for hit in hits for code, share in hit.causes.items() if share >= least])


def _is_conditional(entry: Signature) -> bool:
    """Whether an entry may not count for an event that it matches, or only as context."""
    when = entry.when
    only_stream = when is None or (
        when.stream == _OF_EVENTS and not (when.status or when.exit_code or when.signal or when.scheduler)
    )
    return not only_stream or bool(entry.needs or entry.unless)


def _likely_causes(hits: Sequence[Signature]) -> frozenset[str]:
    """The causes for which the entries of an event stand; those of an entry are found once."""
    causes = _NO_CAUSES
    for hit in hits:
        known = _LIKELY_CAUSES.get(hit.id)
        if known is None or known[0] is not hit.causes:  # other catalogues may have an entry of this id
            known = _LIKELY_CAUSES[hit.id] = (hit.causes, causes_of([hit], _LIKELY))
        causes = causes | known[1] if causes else known[1]
    return causes
