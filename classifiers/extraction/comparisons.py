"""Compares what a case shows: several ranks with one another, memory that is used with who uses it.

An observation is a name that catalogue entries may name in `needs` and `unless`, as they name other entries: so that a
line can mean something else where the case shows more than the line. `observation_names` lists them.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

from classifiers.contracts import JobFacts
from classifiers.extraction import training_progress
from classifiers.extraction.line_headers import parse_header
from classifiers.extraction.observed.asked_to_end import ASKED_TO_END, is_asked_to_end_first
from classifiers.extraction.observed.device_memory import OUT_OF_MEMORY, is_held_by_self
from classifiers.extraction.observed.few_paces import slowed_between
from classifiers.extraction.observed.memory_growth import ENDED_FOR_MEMORY, grew_without_end
from classifiers.extraction.observed.paths import LOST_PATHS, REFUSED_PATHS, is_of_announced_work, was_written_before
from classifiers.extraction.observed.phases import (
    COLLECTIVE_TIMEOUTS,
    MISSED_HEARTBEATS,
    is_alive_when_given_up,
    works_while_others_wait,
)
from classifiers.extraction.observed.repeated_faults import DEVICE_FAULTS, is_at_same_step
from classifiers.extraction.observed.replaced_pods import OWN_USE, is_evicted_again
from classifiers.extraction.observed.stacks import is_busy_elsewhere
from classifiers.extraction.scan import ScannedLine
from classifiers.extraction.stream_reader import StreamText
from classifiers.observation_names import (
    ALIVE_WHEN_GIVEN_UP,
    ASKED_TO_END_FIRST,
    BUSY_ELSEWHERE,
    COLLECTIVES_DIFFER,
    EVICTED_AGAIN,
    FAULT_ON_SEVERAL_RANKS,
    LEFT_EARLY,
    MEMORY_GREW,
    MEMORY_HELD_BY_OTHERS,
    MEMORY_HELD_BY_SELF,
    ONE_RANK_NOT_FINITE,
    PATH_OF_ANNOUNCED_WORK,
    PATH_ON_OTHER_NODES,
    PATH_WRITTEN_BEFORE,
    SAME_STEP_AGAIN,
    SLOWED_DOWN,
    SOFTWARE_ON_OTHER_NODES,
    VERSIONS_DIFFER,
    WORKED_MEANWHILE,
)
from classifiers.relevance.event_rules import deadlines, timeouts, waits

# A program's own faults on the device: hardware does not commit them on several devices at once.
_MEMORY_FAULTS: Final = frozenset({"cuda.illegal-access"})
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
_WORK: Final = re.compile(r"\bSeqNum=(?P<number>\d+), OpType=(?P<operation>\w+)(?:, NumelIn=(?P<size>\d+))?")
_GROUP: Final = re.compile(r"\bPG GUID (?P<group>\w+)")
# How a rank says that its work is done, and how many characters at the end of its log are read (judgement).
_DONE: Final = re.compile(
    r"(?i)\bran out of data\b|\b(?:exhausted|finished|completed?|done|exiting|returned|reached (?:max|the end))\b"
    r"|\bno more (?:batches|data|samples)\b"
)
_LAST_CHARS: Final = 600
_NOT_THERE: Final = frozenset(
    {"python.file-not-found", "python.not-found-file", "tensorflow.notfound-path", "wordings.not-there"}
)
_NOT_INSTALLED: Final = frozenset(
    {
        "python.module-not-found",
        "python.shared-object",
        "python.undefined-symbol",
        "python.glibc-version",
        "cuda.missing-cuda-lib",
    }
)
_PATH: Final = re.compile(r"['\"\s:=(](?P<path>/[\w.@%+=-]{1,80}(?:/[\w.@%+=-]{1,120}){0,12})")
# A row of a list of mounted file systems, by df or mount, and what a program says of a path that it could read.
_MOUNTED: Final = re.compile(r"(?m)(?:\s\d{1,3}% (?P<df>/\S{0,200})$|\bon (?P<mount>/\S{1,200}) type \w)")
_READ: Final = re.compile(
    r"(?i)\b(?:found|loaded|opened|read|indexed|listed|mapped|resolved|verified|using|restored)\b"
    r"|\b\d[\d,]* (?:files|images|samples|shards|classes|records|rows|documents|bytes|MB|GB|GiB|MiB)\b"
)
# The version of a part that every node of a platform has alike, as each process prints it when it starts.
_VERSION_LINES: Final = {
    "NCCL version ": re.compile(r"\bNCCL version (?P<version>\d[\w.]*)"),
    "cudaDriverVersion ": re.compile(r"\bcudaDriverVersion (?P<version>\d+)"),
    "Driver Version: ": re.compile(r"\bDriver Version: (?P<version>\d[\d.]*)"),
    "glibc": re.compile(r"\bglibc[ -=:]{1,3}(?P<version>\d[\d.]*)"),
    "OFED-internal-": re.compile(r"\bOFED-internal-(?P<version>\d[\w.-]*)"),
}
# A row of the table of processes that nvidia-smi prints: it names every process of a device, whoever started it.
_SMI_ROW: Final = re.compile(
    r"(?m)^.*\|\s+\d+\s+(?:N/A|\d+)\s+(?:N/A|\d+)\s+\d+\s+[CGM+]{1,3}\s.*\|\s*$|^\d{2,8}, [^\n]*MiB\s*$"
)
_FEWEST_TIMES: Final = 2  # a batch that is not finite once may be the data's fault (judgement)
# What scripts that look after a failed job say of a process on a device of the job.
_STRANGER: Final = re.compile(
    r"(?i)\b(?:no|not (?:in|of|part of) (?:a|any|this|the)|outside (?:of )?(?:a|any|this|the)"
    r"|(?:an)?other|different|earlier|previous) job\b|\bwithout (?:a|an|any) (?:job|allocation)\b"
    r"|\b(?:an)?other user\b|\bnot allocated\b|\b(?:stray|orphan(?:ed)?|leftover) process"
)
_TRIED: Final = re.compile(r"Tried to allocate (?P<size>[\d.]+) (?P<unit>[GM]iB)")
_FREE: Final = re.compile(r"of which (?P<size>[\d.]+) (?P<unit>[GM]iB) is free")
# Judgement: a process that holds more than this share of the memory leaves too little for the job's own.
_MOST_OF_DEVICE: Final = 0.5


def observations(job: JobFacts, streams: Sequence[StreamText], present: AbstractSet[str]) -> frozenset[str]:
    """The observations that hold of a case.

    Args:
        job: the facts of the job.
        streams: its texts.
        present: the catalogue entries that match a line of the case. Most observations are about lines of a few
            entries, and are not looked for without one.
    """
    return frozenset(
        name
        for name, (entries, holds) in _OBSERVATIONS.items()
        if (entries is None or not present.isdisjoint(entries())) and holds(job, streams)
    )


def _lines_with(streams: Sequence[StreamText], entries: frozenset[str]) -> Iterator[tuple[StreamText, ScannedLine]]:
    """The lines that one of some catalogue entries matches, with their logs."""
    for stream in streams:
        for line in stream.lines:
            if any(hit.id in entries for hit in line.hits):
                yield stream, line


def rank_of(line: str) -> int | None:
    """The rank that a line names by its header, which a launcher may have labelled with the rank again."""
    rank = parse_header(line).rank
    return parse_header(line, labelled=True).rank if rank is None else rank


def _fault_on_several_ranks(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether several ranks report a memory fault of their own."""
    ranks: set[tuple[str, int]] = set()
    for stream, line in _lines_with(streams, _MEMORY_FAULTS):
        rank = rank_of(line.text)
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
    for _, line in _lines_with(streams, OUT_OF_MEMORY):
        holders = _HOLDER.findall(line.text)
        capacity = _CAPACITY.search(line.text)
        if not holders or capacity is None:
            continue
        if any(_is_stated_stranger(pid, streams) and _would_have_fitted(line.text, held) for pid, held in holders):
            return True
        pid, held = max(holders, key=lambda one: float(one[1]))
        if float(held) <= _MOST_OF_DEVICE * float(capacity["total"]) or _is_own_process(pid, line.text, streams):
            continue
        own = _ALLOCATED.search(line.text)
        # In a container the driver's number of a process is not its own one: what PyTorch allocated tells whether it is
        # the same one. Of several processes one is the job's own; of one, if the device has no room for both.
        if len(holders) == 1:
            is_other = own is None or _gib(own) + float(held) <= float(capacity["total"])
        else:
            is_other = own is not None and _gib(own) < _MOST_OF_DEVICE * float(held)
        if is_other:
            return True
    return False


def _is_stated_stranger(pid: str, streams: Sequence[StreamText]) -> bool:
    """Whether a line of the logs says that a process belongs to no job, to another job or to another user."""
    word = re.compile(rf"(?<!\d){pid}(?!\d)")
    return any(
        word.search(line) is not None and _STRANGER.search(line) is not None
        for one in streams
        if pid in one.text
        for line in one.text.splitlines()
        if pid in line
    )


def _would_have_fitted(line: str, held: str) -> bool:
    """Whether a failed allocation would have found room without what another process held (in GiB)."""
    tried, free = _TRIED.search(line), _FREE.search(line)
    return tried is None or free is None or _gib(tried) <= _gib(free) + float(held)


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
    return any(
        pid in one.text and word.search(_SMI_ROW.sub("", one.text.replace(line, ""))) is not None for one in streams
    )


def _one_rank_not_finite(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether only one rank, not the one that reports for all, has numbers that are not finite, more than once."""
    named = [
        match["ranks"]
        for _, line in _lines_with(streams, _NOT_FINITE)
        if (match := _RANKS.search(line.text)) is not None
    ]
    return len(named) >= _FEWEST_TIMES and len(set(named)) == 1 and named[0].isdigit() and named[0] != "0"


def _collectives_differ(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether time-outs name two operations, or two sizes of one, with the same number in the same group of ranks."""
    named: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for _, line in _lines_with(streams, COLLECTIVE_TIMEOUTS):
        work = _WORK.search(line.text)
        if work is not None:
            group = _GROUP.search(line.text)
            number = (group["group"] if group is not None else "", work["number"])
            named.setdefault(number, set()).add((work["operation"], work["size"] or ""))
    return any(len(operations) > 1 for operations in named.values())


def _left_early(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether one rank ended as if its work were done, while the others report that one of them is gone or late."""
    logs = [one for one in streams if one.source.rank is not None and one.text.strip()]
    lost = {one.index for one, _ in _lines_with(logs, waits())}
    silent = [one for one in logs if one.index not in lost]
    if not lost or len({one.source.rank for one in silent}) != 1:
        return False
    return all(_is_done(one) for one in silent if one.source.stream != "stdout" or len(silent) == 1)


def _is_done(stream: StreamText) -> bool:
    """Whether a log ends in words of work that is done, without an error."""
    hits = (hit for line in stream.lines for hit in line.hits)
    failed = any(hit.role == "initiating" and hit.strength != "weak" and not hit.needs for hit in hits)
    return not failed and _DONE.search(stream.text.rstrip()[-_LAST_CHARS:]) is not None


def _slowed_down(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether a job that did not end in time took several times as long for its steps in the end as before.

    Not where it gave each step more work.
    """
    if next(_lines_with(streams, deadlines()), None) is None:
        return False
    texts = [one.text for one in streams if not one.is_scheduler]
    if any(map(training_progress.has_slowed, texts)):
        return not any(map(training_progress.has_more_work, texts))
    return any(slowed_between(text) is not None for text in texts)


def _path_on_other_nodes(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether a path that a rank does not find is there on another node, by the logs of the ranks there.

    The rank's own node has to list its file systems without the one of the path, where lists of them are compared.
    """
    for stream, line in _lines_with(streams, _NOT_THERE):
        node = stream.source.node
        found = _PATH.findall(line.text)
        others = [one for one in streams if node is not None and one.source.node not in {None, node}]
        if not found or any(_lacks_path(one, found) for one in others):
            continue
        here = _mounts([one for one in streams if one.source.node == node])
        there = _mounts(others)
        for path in found:
            mounted = {point for point in there if len(point) > 1 and (path + "/").startswith(point + "/")}
            if (here and mounted and mounted.isdisjoint(here)) or any(_reads(one, path) for one in others):
                return True
    return False


def _lacks_path(stream: StreamText, paths: Sequence[str]) -> bool:
    """Whether a log does not find one of some paths."""
    return any(path in line.text for _, line in _lines_with([stream], _NOT_THERE) for path in paths)


def _mounts(streams: Sequence[StreamText]) -> frozenset[str]:
    """Where file systems are mounted, by the lists that logs show."""
    listing = (one.text for one in streams if "% /" in one.text or " type " in one.text)  # as every match has
    found = (match for text in listing for match in _MOUNTED.finditer(text))
    return frozenset(match["df"] or match["mount"] for match in found)


def _reads(stream: StreamText, path: str) -> bool:
    """Whether a log says that something was read from a path."""
    at = stream.text.find(path)
    while at >= 0:
        begin, end = stream.text.rfind("\n", 0, at) + 1, stream.text.find("\n", at)
        line = stream.text[begin : end if end >= 0 else None]
        if _READ.search(line.replace(path, "")) is not None:
            return True
        at = stream.text.find(path, at + len(path))
    return False


def _software_on_other_nodes(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether all ranks of one node lack a library or module that no rank of another node lacks.

    One rank alone may be the only one that runs a part of the program, as rank 0 often is.
    """
    lacking = {one.index for one, _ in _lines_with(streams, _NOT_INSTALLED)}
    logs = [one for one in streams if one.source.node is not None and one.source.rank is not None and one.text]
    without = {one.source.node for one in logs if one.index in lacking}
    if len(without) != 1 or not any(one.source.node not in without for one in logs):
        return False
    ranks = [one for one in logs if one.source.node in without]
    return all(one.index in lacking for one in ranks) and (len(ranks) > 1 or ranks[0].source.rank != 0)


def _versions_differ(_job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether the nodes of a job print different versions of a part that the platform gives to all of them."""
    for words, pattern in _VERSION_LINES.items():
        by_node: dict[str, set[str]] = {}
        for one in streams:
            if one.source.node is not None and words in one.text:
                by_node.setdefault(one.source.node, set()).update(pattern.findall(one.text))
        seen = [versions for versions in by_node.values() if versions]
        if any(versions.isdisjoint(seen[0]) for versions in seen[1:]):
            return True
    return False


_Holds: TypeAlias = Callable[[JobFacts, Sequence[StreamText]], bool]
# By observation: the entries of which one has to match a line, None where it is not about such lines; how it is made.
_OBSERVATIONS: Final[Mapping[str, tuple[Callable[[], frozenset[str]] | None, _Holds]]] = {
    EVICTED_AGAIN: (lambda: OWN_USE, lambda _job, streams: is_evicted_again(streams)),
    FAULT_ON_SEVERAL_RANKS: (lambda: _MEMORY_FAULTS, _fault_on_several_ranks),
    MEMORY_GREW: (lambda: ENDED_FOR_MEMORY, lambda _job, streams: grew_without_end(streams)),
    MEMORY_HELD_BY_OTHERS: (lambda: _MEMORY_OF_NODE | OUT_OF_MEMORY, _memory_held_by_others),
    MEMORY_HELD_BY_SELF: (lambda: OUT_OF_MEMORY, lambda _job, streams: is_held_by_self(streams)),
    ONE_RANK_NOT_FINITE: (lambda: _NOT_FINITE, _one_rank_not_finite),
    COLLECTIVES_DIFFER: (lambda: COLLECTIVE_TIMEOUTS, _collectives_differ),
    SLOWED_DOWN: (deadlines, _slowed_down),
    LEFT_EARLY: (waits, _left_early),
    PATH_ON_OTHER_NODES: (lambda: _NOT_THERE, _path_on_other_nodes),
    SOFTWARE_ON_OTHER_NODES: (lambda: _NOT_INSTALLED, _software_on_other_nodes),
    PATH_WRITTEN_BEFORE: (lambda: REFUSED_PATHS, lambda _job, streams: was_written_before(streams)),
    PATH_OF_ANNOUNCED_WORK: (lambda: LOST_PATHS, lambda _job, streams: is_of_announced_work(streams)),
    SAME_STEP_AGAIN: (lambda: DEVICE_FAULTS, lambda _job, streams: is_at_same_step(streams)),
    VERSIONS_DIFFER: (None, _versions_differ),
    ASKED_TO_END_FIRST: (lambda: ASKED_TO_END, lambda _job, streams: is_asked_to_end_first(streams)),
    BUSY_ELSEWHERE: (timeouts, lambda _job, streams: is_busy_elsewhere(streams)),
    ALIVE_WHEN_GIVEN_UP: (lambda: MISSED_HEARTBEATS, lambda _job, streams: is_alive_when_given_up(streams)),
    WORKED_MEANWHILE: (lambda: COLLECTIVE_TIMEOUTS, lambda _job, streams: works_while_others_wait(streams)),
}
