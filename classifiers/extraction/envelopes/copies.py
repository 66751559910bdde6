"""Logs of one process that hold nothing of their own: the same log given as its output and as its errors.

Schedulers write both to one file by default, and event sources then name that file twice; `tee` writes one of them into
the other. Read twice, a line counts as two reports of two writers.
"""

from collections.abc import Sequence
from dataclasses import replace

from classifiers.contracts import LogStream, RawCase


def without_copies(raw: RawCase) -> RawCase:
    """A case without logs whose lines all are in another log of the same process; the same object without such logs."""
    streams = raw.streams
    full = [stream for stream in streams if stream.text and not stream.text.isspace()]
    if len(full) < 2 or len({(one.rank, one.node) for one in full}) == len(full):  # noqa: PLR2004 - a log and its copy
        return raw
    copies = {
        place
        for place, stream in enumerate(streams)
        if any(_is_copy(streams, place, other) for other in range(len(streams)))
    }
    return replace(raw, streams=tuple(one for place, one in enumerate(streams) if place not in copies))


def _is_copy(streams: Sequence[LogStream], place: int, other: int) -> bool:
    """Whether one log has nothing that another log of its process lacks; of two that are equal the later one."""
    one, whole = streams[place], streams[other]
    if place == other or (one.rank, one.node) != (whole.rank, whole.node) or one.stream == whole.stream:
        return False
    text = one.text.strip()
    if not text or len(one.text) > len(whole.text) or (len(one.text) == len(whole.text) and place < other):
        return False
    if text.partition("\n")[0].strip() not in whole.text:
        return False
    known = {line.strip() for line in whole.text.split("\n")}
    return all(line.strip() in known for line in text.split("\n"))
