"""The memory of devices and nodes: who holds it when none is left, and whether that of a program grew until its end.

Where none is left, the process itself may hold it, or one of another job.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from classifiers.contracts import JobFacts
from classifiers.extraction.stream_reader import StreamText, lines_with

OUT_OF_MEMORY: Final[frozenset[str]] = frozenset({"pytorch.cuda-oom"})
OUT_OF_NODE_MEMORY: Final[frozenset[str]] = frozenset({"ray.oom"})


def _size_in(name: str) -> str:
    """An expression for a size: its number as group `name`, its unit as `name`_unit. `1.2.3` is no number."""
    return rf"(?P<{name}>(?<![\d.])\d{{1,9}}(?:\.\d{{1,9}})?) (?P<{name}_unit>[GMK]i?B|bytes)"


_TOTAL: Final = re.compile(rf"{_size_in('total')} total capacity|total capacity of {_size_in('capacity')}")
# Of versions before 1.4 ("cached", beside what is allocated), of later ones, and of 2.1 and later. In a container these
# do not know which of the listed processes is their own.
_ALLOCATED: Final = re.compile(rf"{_size_in('size')} (?:already allocated|is allocated by PyTorch)")
_CACHED: Final = re.compile(rf"{_size_in('size')} (?:cached|is reserved by PyTorch but unallocated)")
_OWN: Final = re.compile(
    rf"this process has {_size_in('process')} memory in use|{_size_in('reserved')} reserved in total"
)
_TRIED: Final = re.compile(rf"Tried to allocate {_size_in('size')}")
_FREE: Final = re.compile(rf"of which {_size_in('size')} is free")
_LEFT: Final = re.compile(rf"; {_size_in('size')} free;")
# Processes that choose no device all use the first one, so that a job fills it by itself.
_NOT_FIRST: Final = re.compile(r"\(GPU [1-9]\d?;")
_MIB: Final = {"GiB": 1024.0, "MiB": 1.0, "KiB": 1 / 1024, "GB": 1024.0, "MB": 1.0, "KB": 1 / 1024, "bytes": 0.0}
# Judgement: a process that holds more than this share of a device would need a larger one, whoever else uses it.
_MOST: Final = 0.75
_HOLDER: Final = re.compile(r"Process (?P<pid>\d{1,10}) has (?P<held>\d{1,9}(?:\.\d{1,9})?) GiB memory in use")
# A row of Ray's table of the processes that use most memory, and the name that Ray gives its own workers.
_MEMORY_ROW: Final = re.compile(r"(?m)(?:^|[ \t])\d{1,8}\t(?P<held>\d{1,9}(?:\.\d{1,9})?)\t(?P<command>\S[^\n]{0,200})")
_RAY_NAMES: Final = ("ray::", "/ray/", "raylet", "python")
# What scripts that look after a failed job say of a process on a device of the job.
_STRANGER: Final = re.compile(
    r"(?i)\b(?:no|not (?:in|of|part of) (?:a|any|this|the)|outside (?:of )?(?:a|any|this|the)"
    r"|(?:an)?other|different|earlier|previous) job\b|\bwithout (?:a|an|any) (?:job|allocation)\b"
    r"|\b(?:an)?other user\b|\bnot allocated\b|\b(?:stray|orphan(?:ed)?|leftover) process"
)
# Judgement: a process that holds more than this share of the memory leaves too little for the job's own.
_MOST_OF_DEVICE: Final = 0.5
ENDED_FOR_MEMORY: Final = frozenset({
    "slurm.oom", "kubernetes.oomkilled", "kernel.oom-cgroup", "pytorch.dataloader-killed", "ray.oom", "shell.exit-137",
    "pytorch.elastic-sigkill", "shell.rank-killed", "shell.killed",
})  # fmt: skip
# What a program prints of the memory of the host that its processes hold: not of a device, and no limit.
_HOST_MEMORY: Final = re.compile(
    r"(?i)\b(?:rss|uss|pss|(?:host|cpu|system|process|main|worker)[ _-]?(?:mem(?:ory)?|ram)|ram|mem(?:ory)?)"
    r"(?:[ _](?:used|usage|in use))?[ :=]{1,3}(?P<value>\d{1,9}(?:\.\d{1,4})?) ?(?P<unit>[KMGT])i?B?\b"
)
_HOST_MEMORY_WORDS: Final = ("rss", "RSS", "mem", "Mem", "MEM", "ram", "RAM", "uss", "USS", "pss", "PSS")
_OF_DEVICE: Final = re.compile(r"(?i)\b(?:gpu|cuda|device|alloc\w*|reserved|vram|hbm|peak\w*|max\w*)\b|\bfree\b")
_IN_KB: Final = {"K": 1.0, "M": 1e3, "G": 1e6, "T": 1e9}
_RANGE: Final = 262_144  # characters of a log that are read (judgement)
_LINE: Final = 400
# Judgement: what grows in so many reports, hardly ever shrinks, and becomes so many times as large does not stop.
_FEWEST_REPORTS: Final = 6
_GREW: Final = 1.5
_STILL_GREW: Final = 1.1  # in its second half
_MOST_SHRINKS: Final = 0.1


def is_held_by_self(streams: Sequence[StreamText]) -> bool:
    """Whether each process that ran out of a device's memory holds most of it itself, by all messages that say so."""
    shares = [share for _, line in lines_with(streams, OUT_OF_MEMORY) if (share := _own_share(line.text)) is not None]
    return bool(shares) and min(shares) > _MOST


def _own_share(text: str) -> float | None:
    """Which share of the device the process holds, None if the message does not say."""
    total = _TOTAL.search(text)
    if total is None:
        return None
    capacity = _capacity(total)
    own = _OWN.search(text)
    if own is not None:
        held = _size(own, "process" if own["process"] else "reserved")
    else:
        parts = [_ALLOCATED.search(text), _CACHED.search(text)]
        held = sum(_size(part) for part in parts if part is not None)
    return held / capacity if held and capacity else None


def _capacity(found: re.Match[str]) -> float:
    return _size(found, "total" if found["total"] else "capacity")


def _size(found: re.Match[str], name: str = "size") -> float:
    """A size in MiB."""
    return float(found[name]) * _MIB[found[f"{name}_unit"]]


def is_held_by_others(job: JobFacts, streams: Sequence[StreamText]) -> bool:
    """Whether most of the memory is held by one process that is none of the job's: of a device, or of a node.

    Of a device only where a scheduler started the job: else its user may have started the other one too.
    """
    if any(_is_held_by_other_program(stream.text) for stream, _ in lines_with(streams, OUT_OF_NODE_MEMORY)):
        return True
    if job.scheduler is None:
        return False
    for _, line in lines_with(streams, OUT_OF_MEMORY):
        if _is_full_without_own(line.text):
            return True
        holders = [(found["pid"], float(found["held"]) * _MIB["GiB"]) for found in _HOLDER.finditer(line.text)]
        total = _TOTAL.search(line.text)
        if not holders or total is None:
            continue
        if any(_is_stated_stranger(pid, streams) and _would_have_fitted(line.text, held) for pid, held in holders):
            return True
        capacity = _capacity(total)
        held = max(held for _, held in holders)
        if held <= _MOST_OF_DEVICE * capacity:
            continue
        own = _ALLOCATED.search(line.text)
        # In a container the driver's number of a process is not its own one: what PyTorch allocated tells whether it is
        # the same one. Of several processes one is the job's own; of one, if the device has no room for both.
        if len(holders) == 1:
            is_other = own is None or _size(own) + held <= capacity
        else:
            is_other = own is not None and _size(own) < _MOST_OF_DEVICE * held
        if is_other:
            return True
    return False


def _is_full_without_own(text: str) -> bool:
    """Whether a message of PyTorch before 2.1, which names no other process, leaves most of a device to others.

    Own is what PyTorch reserved; a context of CUDA takes less than what is left to doubt.
    """
    total, free = _TOTAL.search(text), _LEFT.search(text)
    own = _own_share(text)
    if total is None or free is None or own is None or _NOT_FIRST.search(text) is None:
        return False
    return own + _size(free) / _capacity(total) < 1 - _MOST


def _is_stated_stranger(pid: str, streams: Sequence[StreamText]) -> bool:
    """Whether a line of the logs says that a process belongs to no job, to another job or to another user."""
    word = re.compile(rf"(?<!\d){pid}(?!\d)")
    return any(
        word.search(line) is not None and _STRANGER.search(line) is not None
        for stream in streams
        if pid in stream.text
        for line in stream.text.splitlines()
        if pid in line
    )


def _would_have_fitted(line: str, held: float) -> bool:
    """Whether a failed allocation would have found room without what another process held (in MiB)."""
    tried, free = _TRIED.search(line), _FREE.search(line)
    return tried is None or free is None or _size(tried) <= _size(free) + held


def _is_held_by_other_program(text: str) -> bool:
    """Whether in Ray's table of processes one that Ray did not start holds more than all others together."""
    rows = [(float(row["held"]), row["command"]) for row in _MEMORY_ROW.finditer(text)]
    if not rows:
        return False
    most, command = max(rows)
    return most > _MOST_OF_DEVICE * sum(held for held, _ in rows) and not any(name in command for name in _RAY_NAMES)


def grew_without_end(streams: Sequence[StreamText]) -> bool:
    """Whether the logs report memory of the program that grew from report to report until the end."""
    return any(
        _grows(values)
        for stream in streams
        if not stream.is_scheduler and any(word in stream.text for word in _HOST_MEMORY_WORDS)
        for values in _series(stream.text[-_RANGE:])
    )


def _series(text: str) -> list[list[float]]:
    """The sizes that lines report, in kB: those at the same place of a line together."""
    series: dict[int, list[float]] = defaultdict(list)
    for line in text.split("\n"):
        if not any(word in line for word in _HOST_MEMORY_WORDS) or _OF_DEVICE.search(line, 0, _LINE) is not None:
            continue
        for place, found in enumerate(_HOST_MEMORY.finditer(line, 0, _LINE)):
            series[place].append(float(found["value"]) * _IN_KB[found["unit"].upper()])
    return list(series.values())


def _grows(values: Sequence[float]) -> bool:
    if len(values) < _FEWEST_REPORTS or values[-1] < _GREW * values[0] or values[-1] < max(values):
        return False
    half = values[len(values) // 2]
    shrinks = sum(later < earlier for earlier, later in pairwise(values))
    return shrinks <= _MOST_SHRINKS * len(values) and values[0] < half and _STILL_GREW * half <= values[-1]
