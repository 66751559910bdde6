"""Who holds the memory of a device, by the account in PyTorch's message that it has none left."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from classifiers.extraction.stream_reader import StreamText

OUT_OF_MEMORY: Final = frozenset({"pytorch.cuda-oom"})
_SIZE: Final = r"(?P<{name}>[\d.]{{1,9}}) (?P<{name}_unit>[GMK]i?B|bytes)"
_TOTAL: Final = re.compile(
    rf"{_SIZE.format(name='total')} total capacity|total capacity of {_SIZE.format(name='capacity')}"
)
# Of versions before 1.4 ("cached", beside what is allocated), of later ones, and of 2.1 and later. In a container these
# do not know which of the listed processes is their own.
_ALLOCATED: Final = re.compile(rf"{_SIZE.format(name='size')} (?:already allocated|is allocated by PyTorch)")
_CACHED: Final = re.compile(rf"{_SIZE.format(name='size')} (?:cached|is reserved by PyTorch but unallocated)")
_OWN: Final = re.compile(
    rf"this process has {_SIZE.format(name='process')} memory in use|{_SIZE.format(name='reserved')} reserved in total"
)
_MIB: Final = {"GiB": 1024.0, "MiB": 1.0, "KiB": 1 / 1024, "GB": 1024.0, "MB": 1.0, "KB": 1 / 1024, "bytes": 0.0}
# Judgement: a process that holds more than this share of a device would need a larger one, whoever else uses it.
_MOST: Final = 0.75


def is_held_by_self(streams: Sequence[StreamText]) -> bool:
    """Whether each process that ran out of a device's memory holds most of it itself, by all messages that say so."""
    shares = [share for text in _messages(streams) if (share := _own_share(text)) is not None]
    return bool(shares) and min(shares) > _MOST


def _messages(streams: Sequence[StreamText]) -> Iterator[str]:
    for stream in streams:
        for line in stream.lines:
            if any(hit.id in OUT_OF_MEMORY for hit in line.hits):
                yield line.text


def _own_share(text: str) -> float | None:
    """Which share of the device the process holds, None if the message does not say."""
    total = _TOTAL.search(text)
    if total is None:
        return None
    capacity = _size(total, "total" if total["total"] else "capacity")
    own = _OWN.search(text)
    if own is not None:
        held = _size(own, "process" if own["process"] else "reserved")
    else:
        parts = [_ALLOCATED.search(text), _CACHED.search(text)]
        held = sum(_size(part, "size") for part in parts if part is not None)
    return held / capacity if held and capacity else None


def _size(found: re.Match[str], name: str) -> float:
    """A size in MiB, 0 if it is no number."""
    number = found[name]
    return 0.0 if number.count(".") > 1 or number == "." else float(number) * _MIB[found[f"{name}_unit"]]
