"""What the ranks of a job show together: the same fault, one that differs, one that ended before the others."""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.contracts import JobFacts
from classifiers.extraction.line_headers import rank_of, time_of
from classifiers.extraction.observations.phases import COLLECTIVE_TIMEOUTS
from classifiers.extraction.stream_reader import StreamText, lines_with
from classifiers.relevance.entry_groups import peer_lost
from classifiers.relevance.words_in_text import is_word_in

# A program's own faults on the device: hardware does not commit them on several devices at once.
MEMORY_FAULTS: Final[frozenset[str]] = frozenset({"cuda.illegal-access"})
NOT_FINITE: Final[frozenset[str]] = frozenset(
    {"wordings.one-replica-differs", "wordings.rank-not-finite", "wordings.same-rank-again"}
)
_RANKS: Final = re.compile(r"(?i)\brank(?:\(s\)|s)?[ :=#]{0,2}\[?(?P<ranks>\d{1,6}(?:, ?\d{1,6}){0,64})")
_WORK: Final = re.compile(r"\bSeqNum=(?P<number>\d+), OpType=(?P<operation>\w+)(?:, NumelIn=(?P<size>\d+))?")
_GROUP: Final = re.compile(r"\bPG GUID (?P<group>\w+)")
# How a rank says that its work is done, and how many characters at the end of its log are read (judgement).
_DONE: Final = re.compile(
    r"(?i)\bran out of data\b|\b(?:exhausted|finished|completed?|done|exiting|returned|reached (?:max|the end))\b"
    r"|\bno more (?:batches|data|samples)\b"
)
_LAST_CHARS: Final = 600
_FEWEST_TIMES: Final = 2  # a batch that is not finite once may be the data's fault (judgement)
ASKED_TO_END: Final = frozenset({"shell.asked-to-end-first"})
# Judgement: a process that is asked to end because of a failure is asked at once.
_REQUESTED_WITHIN_S: Final = 120.0


def fault_on_several_ranks(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether several ranks report a memory fault of their own."""
    ranks: set[tuple[str, int]] = set()
    for stream, line in lines_with(streams, MEMORY_FAULTS):
        rank = rank_of(line.text)
        rank = stream.source.rank if rank is None else rank
        ranks.add(("stream", stream.index) if rank is None else ("rank", rank))
    return len(ranks) > 1


def one_rank_not_finite(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether only one rank, not the one that reports for all, has numbers that are not finite, more than once."""
    named = [
        match["ranks"] for _, line in lines_with(streams, NOT_FINITE) if (match := _RANKS.search(line.text)) is not None
    ]
    return len(named) >= _FEWEST_TIMES and len(set(named)) == 1 and named[0].isdigit() and named[0] != "0"


def collectives_differ(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether time-outs name two operations, or two sizes of one, with the same number in the same group of ranks."""
    named: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for _, line in lines_with(streams, COLLECTIVE_TIMEOUTS):
        work = _WORK.search(line.text)
        if work is not None:
            group = _GROUP.search(line.text)
            number = (group["group"] if group is not None else "", work["number"])
            named.setdefault(number, set()).add((work["operation"], work["size"] or ""))
    return any(len(operations) > 1 for operations in named.values())


def left_early(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether one rank ended as if its work were done, while the others report that one of them is gone or late."""
    logs = [stream for stream in streams if stream.source.rank is not None and stream.text.strip()]
    lost = {one.index for one, _ in lines_with(logs, peer_lost())}
    silent = [log for log in logs if log.index not in lost]
    if not lost or len({one.source.rank for one in silent}) != 1:
        return False
    return all(_is_done(one) for one in silent if one.source.stream != "stdout" or len(silent) == 1)


def _is_done(stream: StreamText) -> bool:
    """Whether a log ends in words of work that is done, without an error."""
    hits = (hit for line in stream.lines for hit in line.hits)
    failed = any(hit.role == "initiating" and hit.strength != "weak" and not hit.needs for hit in hits)
    return not failed and _DONE.search(stream.text.rstrip()[-_LAST_CHARS:]) is not None


def is_asked_to_end_first(streams: Sequence[StreamText]) -> bool:
    """Whether a process was asked to end before another one lost it, and nothing had failed before.

    A process that dies, or whose node does, is asked nothing: somebody, or the platform, ended this one.
    """
    logs = [stream for stream in streams if not stream.is_scheduler]
    end_requests = [
        (time, stream.index) for stream, line in lines_with(logs, ASKED_TO_END) if (time := time_of(line.text))
    ]
    if not end_requests:
        return False
    first, where = min(end_requests)
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
