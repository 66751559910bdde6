"""Compares what a case shows: several ranks with one another, memory that is used with who uses it.

An observation is a name that catalogue entries may name in `needs` and `unless`, as they name other entries: so that a
line can mean something else where the case shows more than the line. They are listed in `signatures.OBSERVATIONS`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from classifiers.contracts import JobFacts
from classifiers.extraction import training_progress
from classifiers.extraction.line_headers import parse_header
from classifiers.extraction.scan import ScannedLine
from classifiers.extraction.stream_reader import StreamText
from classifiers.relevance.event_rules import deadlines
from classifiers.signatures import (
    COLLECTIVES_DIFFER,
    FAULT_ON_SEVERAL_RANKS,
    MEMORY_HELD_BY_OTHERS,
    ONE_RANK_NOT_FINITE,
    SLOWED_DOWN,
)

# A program's own faults on the device: hardware does not commit them on several devices at once.
_MEMORY_FAULTS: Final = frozenset({"cuda.illegal-access"})
_OUT_OF_MEMORY: Final = frozenset({"pytorch.cuda-oom"})
_CAPACITY: Final = re.compile(r"total capacity of (?P<total>[\d.]+) GiB")
_HOLDER: Final = re.compile(r"Process (?P<pid>\d+) has (?P<held>[\d.]+) GiB memory in use")
_ALLOCATED: Final = re.compile(r"Of the allocated memory (?P<size>[\d.]{1,9}) (?P<unit>[GM]iB) is allocated by PyTorch")
_MIB_PER_GIB: Final = 1024
_MEMORY_OF_NODE: Final = frozenset({"ray.oom"})
# A row of Ray's table of the processes that use most memory, and the name that Ray gives its own workers.
_MEMORY_ROW: Final = re.compile(r"(?m)(?:^|[ \t])\d{1,8}\t(?P<held>[\d.]{1,12})\t(?P<command>\S[^\n]{0,200})")
_RAY_NAMES: Final = ("ray::", "/ray/", "raylet", "python")
_NOT_FINITE: Final = frozenset({"wordings.one-replica-differs", "wordings.rank-not-finite", "wordings.same-rank-again"})
_RANKS: Final = re.compile(r"(?i)\brank(?:\(s\)|s)?[ :=#]{0,2}\[?(?P<ranks>\d{1,6}(?:, ?\d{1,6}){0,64})")
_TIMEOUTS: Final = frozenset({"pytorch.nccl-watchdog-timeout"})
_WORK: Final = re.compile(r"\bSeqNum=(?P<number>\d+), OpType=(?P<operation>\w+)(?:, NumelIn=(?P<size>\d+))?")
_GROUP: Final = re.compile(r"\bPG GUID (?P<group>\w+)")
_FEWEST_TIMES: Final = 2  # a batch that is not finite once may be the data's fault (judgement)
# Judgement: a process that holds more than this share of the memory leaves too little for the job's own.
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
    """Whether most of the memory is held by one process that is none of the job's: of a device, or of a node.

    Of a device only where a scheduler started the job: else its user may have started the other one too.
    """
    if any(_is_held_by_other_program(stream.text) for stream, _ in _lines_with(streams, _MEMORY_OF_NODE)):
        return True
    if job.scheduler is None:
        return False
    for _, line in _lines_with(streams, _OUT_OF_MEMORY):
        holders = _HOLDER.findall(line.text)
        capacity = _CAPACITY.search(line.text)
        if not holders or capacity is None:
            continue
        pid, held = max(holders, key=lambda one: float(one[1]))
        if float(held) <= _MOST_OF_DEVICE * float(capacity["total"]) or _is_own_process(pid, line.text, streams):
            continue
        own = _ALLOCATED.search(line.text)
        # Of several processes one is the job's own: the one that holds about what PyTorch allocated.
        if len(holders) == 1 or (own is not None and _gib(own) < _MOST_OF_DEVICE * float(held)):
            return True
    return False


def _gib(found: re.Match[str]) -> float:
    return float(found["size"]) / (1 if found["unit"] == "GiB" else _MIB_PER_GIB)


def _is_held_by_other_program(text: str) -> bool:
    """Whether in Ray's table of processes one that Ray did not start holds more than all others together."""
    rows = [(float(row["held"]), row["command"]) for row in _MEMORY_ROW.finditer(text) if _is_number(row["held"])]
    if not rows:
        return False
    most, command = max(rows)
    return most > _MOST_OF_DEVICE * sum(held for held, _ in rows) and not any(name in command for name in _RAY_NAMES)


def _is_number(text: str) -> bool:
    return text.count(".") <= 1 and text != "."


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


def _slowed_down(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether a job that did not end in time took several times as long for its steps in the end as before.

    Not where it gave each step more work.
    """
    if next(_lines_with(streams, deadlines()), None) is None:
        return False
    texts = [one.text for one in streams if not one.is_scheduler]
    return any(map(training_progress.has_slowed, texts)) and not any(map(training_progress.has_more_work, texts))


_OBSERVATIONS: Final[Mapping[str, Callable[[JobFacts, Sequence[StreamText]], bool]]] = {
    FAULT_ON_SEVERAL_RANKS: _fault_on_several_ranks,
    MEMORY_HELD_BY_OTHERS: _memory_held_by_others,
    ONE_RANK_NOT_FINITE: _one_rank_not_finite,
    COLLECTIVES_DIFFER: _collectives_differ,
    SLOWED_DOWN: _slowed_down,
}
