"""Whether somebody or something ended a process before any other one lost it."""

from collections.abc import Sequence
from typing import Final

from classifiers.extraction.line_headers import time_of
from classifiers.extraction.stream_reader import StreamText, lines_with
from classifiers.relevance.entry_groups import peer_lost
from classifiers.relevance.words_in_text import is_word_in

ASKED_TO_END: Final = frozenset({"shell.asked-to-end-first"})
# Judgement: a process that is asked to end because of a failure is asked at once.
_REQUESTED_WITHIN_S: Final = 120.0


def is_asked_to_end_first(streams: Sequence[StreamText]) -> bool:
    """Whether a process was asked to end before another one lost it, and nothing had failed before.

    A process that dies, or whose node does, is asked nothing: somebody, or the platform, ended this one.
    """
    logs = [stream for stream in streams if not stream.is_scheduler]
    asked = [(time, stream.index) for stream, line in lines_with(logs, ASKED_TO_END) if (time := time_of(line.text))]
    if not asked:
        return False
    first, where = min(asked)
    node = next(stream.source.node for stream in logs if stream.index == where)
    lost = [(stream, line.text) for stream, line in lines_with(logs, peer_lost())]
    if not lost or not all(stream.index != where and _is_lost_after(text, first, node) for stream, text in lost):
        return False
    # Where lines have no times, a failure in one of them may have come before.
    untimed = first if any(time_of(text) is None for _, text in lost) else 0.0
    return not any(
        hit.role == "initiating" and hit.strength != "weak" and hit.id not in peer_lost() | ASKED_TO_END
        for stream in logs
        for line in stream.lines
        for hit in line.hits
        if first - _REQUESTED_WITHIN_S <= (time_of(line.text) or untimed) <= first
    )


def _is_lost_after(line: str, requested: float, node: str | None) -> bool:
    """Whether a process lost another one after that was asked to end: by the line's time, else by the node it names."""
    time = time_of(line)
    return time > requested if time is not None else node is not None and is_word_in(node.lower(), line.lower())
