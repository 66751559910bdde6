"""The catalogue entries of all events of a node, by which the conditions of others hold or not."""

from collections.abc import Sequence

from classifiers.contracts import RawCase
from classifiers.extraction.events.memory_tables import KILLED_WORDS, holds_more_than_killed, is_held_by_stranger
from classifiers.extraction.events.read_events import ReadEvent
from classifiers.extraction.stream_reader import StreamText
from classifiers.observation_names import MEMORY_HELD_BY_OTHERS
from classifiers.relevance.own_names import is_of_foreign_pod
from classifiers.signatures import Signature


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
