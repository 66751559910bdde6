"""Compares what lines of a failure name with what the events of its nodes say of the same thing.

An event alone never changes what a line of a log means: it has to be about the path or the device of that line.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from classifiers.contracts import NodeEvent, RawCase
from classifiers.extraction.line_headers import rank_of
from classifiers.extraction.observations.phases import has_slow_storage
from classifiers.extraction.stream_reader import StreamText
from classifiers.observation_names import DISK_FILLED_BY_JOB, SAME_DEVICE_AGAIN, STORAGE_SLOWED

_NO_SPACE: Final = frozenset({"python.no-space", "python.no-space-own"})
_MEMORY_FAULTS: Final = frozenset(
    {"cuda.illegal-access", "cuda.illegal-access-on-several", "cuda.illegal-access-again"}
)
_PATH: Final = re.compile(r"(?<![\w.])(?:/[\w.@%+=-]{1,120}){2,16}")
# Who holds how much of a disk: "3.4T job_17", "/local/job_17: 3.4 TiB".
_SIZE: Final = r"(?P<{size}>\d{{1,6}}(?:\.\d{{1,3}})?) ?(?P<{unit}>[KMGTP])i?B?"
_HELD: Final = re.compile(
    rf"\b{_SIZE.format(size='size', unit='unit')}\s{{1,3}}(?:in |by |of |under )?(?P<name>[/\w][\w./@-]{{3,200}})"
    rf"|(?P<name_first>[/\w][\w./@-]{{3,200}})[ :=(]{{1,3}}{_SIZE.format(size='size_last', unit='unit_last')}\b"
)
_UNITS: Final = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_IS_NAME: Final = re.compile(r"[/\d_-]")  # common words have none of these
_MOST: Final = 0.5  # of the space that is listed (judgement)
# A report of a fault that a program or its GPU may have caused, with the device's address.
_FAULT: Final = re.compile(r"\bXid \(PCI:(?P<device>[0-9A-Fa-f:.]{7,20})\): (?:13|31)\b")
# Judgement: faults of one run come within this time; later ones are of another attempt.
_ONE_RUN: Final = timedelta(minutes=2)


def compared_with_events(raw: RawCase, streams: Sequence[StreamText]) -> frozenset[str]:
    """The observations that hold of lines and events together, or that only the meaning of events depends on."""
    if not raw.node_events:
        return frozenset()
    found = ((DISK_FILLED_BY_JOB, _filled_by_job), (SAME_DEVICE_AGAIN, _same_device_again))
    names = [name for name, holds in found if holds(raw.node_events, streams)]
    return frozenset([*names, STORAGE_SLOWED] if has_slow_storage(streams) else names)


def _lines(streams: Sequence[StreamText], entries: frozenset[str]) -> Iterator[tuple[StreamText, str]]:
    for stream in streams:
        for line in stream.lines:
            if any(hit.id in entries for hit in line.hits):
                yield stream, line.text


def _filled_by_job(events: Sequence[NodeEvent], streams: Sequence[StreamText]) -> bool:
    """Whether an event says that a directory of the job's own holds most of the disk on which a rank found no space.

    The line names the path that could not be written; the event names a part of this path as what holds the space.
    """
    parts = {
        part for _, text in _lines(streams, _NO_SPACE) for path in _PATH.findall(text) for part in _own_parts(path)
    }
    if not parts:
        return False
    for event in events:
        held = {name.rstrip("/").rpartition("/")[2]: size for name, size in _holders(event.text)}
        own = sum(size for name, size in held.items() if name in parts)
        if own and own >= _MOST * sum(held.values()):
            return True
    return False


def _own_parts(path: str) -> list[str]:
    """The directories of a path that name something of a job or user: not the first one, where the disk is mounted."""
    return [part for part in path.split("/")[2:-1] if _IS_NAME.search(part)]


def _holders(text: str) -> Iterator[tuple[str, float]]:
    for match in _HELD.finditer(text[:600]):
        name, size = match["name"] or match["name_first"], match["size"] or match["size_last"]
        if _IS_NAME.search(name):
            yield name, float(size) * _UNITS[match["unit"] or match["unit_last"]]


def _same_device_again(events: Sequence[NodeEvent], streams: Sequence[StreamText]) -> bool:
    """Whether the memory faults of different ranks, in several attempts, were all on one and the same device.

    A program's own fault goes with the rank or comes on all devices; one that stays where it is while the ranks move
    is the device's.
    """
    ranks = {rank_of(text) for _, text in _lines(streams, _MEMORY_FAULTS)} - {None}
    if len(ranks) < 2:  # noqa: PLR2004
        return False
    faults = [(event, found["device"]) for event in events if (found := _FAULT.search(event.text)) is not None]
    if len({(event.node, device) for event, device in faults}) != 1:
        return False
    times = [event.at for event, _ in faults if event.at is not None]
    return len(times) > 1 and max(times) - min(times) > _ONE_RUN
