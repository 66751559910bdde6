"""Compares what a case shows: several ranks with one another, memory that is used with who uses it.

An observation is a name that catalogue entries may name in `needs` and `unless`, as they name other entries: so that a
line can mean something else where the case shows more than the line. They are listed in `signatures.OBSERVATIONS`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from classifiers.contracts import JobFacts
from classifiers.extraction.line_headers import parse_header
from classifiers.extraction.scan import ScannedLine
from classifiers.extraction.stream_reader import StreamText
from classifiers.signatures import (
    COLLECTIVES_DIFFER,
    FAULT_ON_SEVERAL_RANKS,
    MEMORY_HELD_BY_OTHERS,
    ONE_RANK_NOT_FINITE,
)

# A program's own faults on the device: hardware does not commit them on several devices at once.
_MEMORY_FAULTS: Final = frozenset({"cuda.illegal-access"})
_OUT_OF_MEMORY: Final = frozenset({"pytorch.cuda-oom"})
_CAPACITY: Final = re.compile(r"total capacity of (?P<total>[\d.]+) GiB")
_HOLDER: Final = re.compile(r"Process (?P<pid>\d+) has (?P<held>[\d.]+) GiB memory in use")
_NOT_FINITE: Final = frozenset({"wordings.one-replica-differs", "wordings.rank-not-finite", "wordings.same-rank-again"})
_RANKS: Final = re.compile(r"(?i)\brank(?:\(s\)|s)?[ :=#]{0,2}\[?(?P<ranks>\d{1,6}(?:, ?\d{1,6}){0,64})")
_TIMEOUTS: Final = frozenset({"pytorch.nccl-watchdog-timeout"})
_WORK: Final = re.compile(r"\bSeqNum=(?P<number>\d+), OpType=(?P<operation>\w+)(?:, NumelIn=(?P<size>\d+))?")
_GROUP: Final = re.compile(r"\bPG GUID (?P<group>\w+)")
_FEWEST_TIMES: Final = 2  # a batch that is not finite once may be the data's fault (judgement)
# Judgement: a process that holds more than this share of the device leaves too little for the job's own.
_MOST_OF_DEVICE: Final = 0.5


def observations(job: JobFacts, streams: Sequence[StreamText]) -> frozenset[str]:
    """The observations that hold of a case."""
    return frozenset(name for name, holds in _OBSERVATIONS.items() if holds(job, streams))


def _lines_with(streams: Sequence[StreamText], entries: frozenset[str]) -> Iterator[tuple[StreamText, ScannedLine]]:
    """The lines that one of some catalogue entries matches, with their logs."""
    for stream in streams:
        for line in stream.lines:
            if any(hit.id in entries for hit in line.hits):
                yield stream, line


def _fault_on_several_ranks(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether several ranks report a memory fault of their own."""
    ranks: set[tuple[str, int]] = set()
    for stream, line in _lines_with(streams, _MEMORY_FAULTS):
        rank = parse_header(line.text).rank
        rank = stream.source.rank if rank is None else rank
        ranks.add(("stream", stream.index) if rank is None else ("rank", rank))
    return len(ranks) > 1


def _memory_held_by_others(job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether most of a device's memory is held by one process that no log of the job names, of a scheduler's job."""
    if job.scheduler is None:
        return False
    for _, line in _lines_with(streams, _OUT_OF_MEMORY):
        holders = _HOLDER.findall(line.text)
        capacity = _CAPACITY.search(line.text)
        if len(holders) != 1 or capacity is None:
            continue
        pid, held = holders[0]
        if float(held) > _MOST_OF_DEVICE * float(capacity["total"]) and not _is_own_process(pid, line.text, streams):
            return True
    return False


def _is_own_process(pid: str, line: str, streams: Sequence[StreamText]) -> bool:
    """Whether the logs name a process elsewhere."""
    word = re.compile(rf"(?<!\d){pid}(?!\d)")
    return any(pid in one.text and word.search(one.text.replace(line, "")) is not None for one in streams)


def _one_rank_not_finite(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether only one rank, not the one that speaks for all, has numbers that are not finite, more than once."""
    named = [
        match["ranks"]
        for _, line in _lines_with(streams, _NOT_FINITE)
        if (match := _RANKS.search(line.text)) is not None
    ]
    return len(named) >= _FEWEST_TIMES and len(set(named)) == 1 and named[0].isdigit() and named[0] != "0"


def _collectives_differ(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether time-outs name two operations, or two sizes of one, with the same number in the same group of ranks."""
    named: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for _, line in _lines_with(streams, _TIMEOUTS):
        work = _WORK.search(line.text)
        if work is not None:
            group = _GROUP.search(line.text)
            number = (group["group"] if group is not None else "", work["number"])
            named.setdefault(number, set()).add((work["operation"], work["size"] or ""))
    return any(len(operations) > 1 for operations in named.values())


_OBSERVATIONS: Final[Mapping[str, Callable[[JobFacts, Sequence[StreamText]], bool]]] = {
    FAULT_ON_SEVERAL_RANKS: _fault_on_several_ranks,
    MEMORY_HELD_BY_OTHERS: _memory_held_by_others,
    ONE_RANK_NOT_FINITE: _one_rank_not_finite,
    COLLECTIVES_DIFFER: _collectives_differ,
}
