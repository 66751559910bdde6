"""The node that holds up the others: logs name its ranks as the slowest, or show that the others gave up on it."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from classifiers.extraction.line_attribution import LineAttribution
from classifiers.extraction.stream_reader import StreamText
from classifiers.node_names import short_name
from classifiers.relevance.entry_groups import peer_lost, wait_timeouts
from classifiers.relevance.words_in_text import is_word_in

_LINE_RANGE: Final = 500
_SLOW_WORDS: Final = ("slowest", "straggler", "Straggler", "STRAGGLER", "Slowest", "lagging", "behind the other")
_SLOWEST: Final = re.compile(
    r"(?i)\b(?:slowest|stragglers?|lagging)\b[^\n]{0,60}?\brank[ :=#]{0,2}\[?(\d{1,6})\b"
    r"|\brank[ :=#]{0,2}(\d{1,6})\b[^\n]{0,60}?\b(?:slowest|straggler|lagging|behind the other)"
)
_SLOW_LIST: Final = re.compile(r"(?i)\b(?:slowest|stragglers?|lagging|worse|slower than)\b")
_RANKS_LISTED: Final = re.compile(r"(?i)\branks?\b[^\n\d]{0,60}(?P<ranks>[\[(]{0,2}\d{1,6}\b[^\n]{0,400})")
# A rank counts as slow where so many lines name one, and so many of them the same (judgement): who is last in a step
# by chance changes from step to step.
_FEWEST_NAMED: Final = 3
_SHARE_NAMED: Final = 0.8
_WORKED_UNTIL_S: Final = 600.0  # before the last progress of any rank (judgement)


def slow_nodes(streams: Sequence[StreamText], nodes: frozenset[str]) -> frozenset[str]:
    """The node of the rank that several lines name as the slowest, empty without one or where it is not known.

    Also the one node that lines name with all the ranks that they call slow.

    Args:
        streams: the logs.
        nodes: short names of the nodes of the job.
    """
    listed = _nodes_of_slow_lists(streams, nodes)
    if listed:
        return listed if len(listed) == 1 else frozenset()
    found = [
        (int(rank), line)
        for stream in streams
        if any(word in stream.text for word in _SLOW_WORDS)
        for line in stream.text.split("\n")
        if (match := _SLOWEST.search(line, 0, _LINE_RANGE)) is not None and (rank := match[1] or match[2])
    ]
    if len(found) < _FEWEST_NAMED:
        return frozenset()
    rank, times = Counter(rank for rank, _ in found).most_common(1)[0]
    if times < _SHARE_NAMED * len(found):
        return frozenset()
    named = {node for one, line in found if one == rank for node in nodes if is_word_in(node, line[:_LINE_RANGE])}
    own = {short_name(one.source.node) for one in streams if one.source.rank == rank and one.source.node is not None}
    if not named and not own and len(nodes) == 1:
        return nodes
    return frozenset(named if len(named) == 1 else own)


def _nodes_of_slow_lists(streams: Sequence[StreamText], nodes: frozenset[str]) -> frozenset[str]:
    """The nodes that lines name with several ranks that they call slow; one rank may be slow by chance."""
    if len(nodes) < 2:  # noqa: PLR2004
        return frozenset()
    found: set[str] = set()
    for stream in streams:
        if not any(word in stream.text for word in _SLOW_WORDS):
            continue
        for line in stream.text.split("\n"):
            if not any(word in line for word in _SLOW_WORDS) or _SLOW_LIST.search(line, 0, _LINE_RANGE) is None:
                continue
            ranks = _RANKS_LISTED.search(line, 0, _LINE_RANGE)
            if ranks is not None and len(re.findall(r"(?<![\w.-])\d{1,6}(?![\w.-])", ranks["ranks"])) > 1:
                found |= {node for node in nodes if is_word_in(node, line[:_LINE_RANGE])}
    return frozenset(found)


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
        if not found.isdisjoint(wait_timeouts()):
            waiting.add(short_name(node))
        elif found <= peer_lost() and (last := attribution.progress_lines.last_time()) is not None:
            working[short_name(node)] = max(last, working.get(short_name(node), last))
    if not waiting or not working:
        return frozenset()
    end = max(working.values())
    late = {node for node, last in working.items() if node not in waiting and last >= end - _WORKED_UNTIL_S}
    return frozenset(late) if len(late) == 1 else frozenset()
