"""Flight Recorder dumps as entries of a job's logs: one stream a dump, and their common evidence."""

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Final

from classifiers.contracts import FLIGHT_RECORDER, CollectiveEvidence, LogStream
from classifiers.flight_recorder.analysis import find_collective_failures
from classifiers.flight_recorder.dump import MOST_BYTES, DumpUnreadable, RankDump, read_dump, to_text

_RANK_OF_FILE: Final = re.compile(r"(\d{1,6})(?:\.\w{1,10}){0,2}$")


def dump_stream(data: bytes, rank: int | None = None, node: str | None = None, uri: str | None = None) -> LogStream:
    """Return the stream of a dump, its text shortened JSON; one that can't be read has the reason in `missing`.

    Args:
        data: the dump as JSON or pickled.
        rank: its rank; None: the number at the end of the file's name.
        node: the node of the rank.
        uri: where the dump was read from.
    """
    if rank is None and uri is not None and (found := _RANK_OF_FILE.search(uri.partition("?")[0])):
        rank = int(found[1])
    text, missing = "", None
    try:
        text = to_text(read_dump(data))
    except DumpUnreadable as error:
        missing = str(error)
    return LogStream(text, rank=rank, node=node, stream=FLIGHT_RECORDER, first_line=None, missing=missing)


def inline_dump(tail: str, rank: int | None = None, node: str | None = None) -> LogStream:
    """Return the stream of a dump that an event carries: JSON text, or either form in base64."""
    if tail.lstrip().startswith("{"):
        return dump_stream(tail.encode("utf-8", "replace"), rank, node)
    try:
        data = base64.b64decode(tail[: 2 * MOST_BYTES], validate=True)
    except (binascii.Error, ValueError):
        reason = "neither JSON nor base64"
        return LogStream("", rank=rank, node=node, stream=FLIGHT_RECORDER, first_line=None, missing=reason)
    return dump_stream(data, rank, node)


def collective_evidence(streams: Sequence[LogStream]) -> CollectiveEvidence | None:
    """Return what the dumps among `streams` show together, None if there are none."""
    dumps: dict[int, RankDump] = {}
    unreadable: list[str] = []
    streams = [stream for stream in streams if stream.stream == FLIGHT_RECORDER]
    if not streams:
        return None
    for stream in streams:
        reason = stream.missing or ("its rank is unknown" if stream.rank is None else None)
        if reason is None and stream.rank is not None:
            try:
                dumps[stream.rank] = read_dump(stream.text.encode("utf-8", "replace"))
            except DumpUnreadable as error:
                reason = str(error)
        if reason is not None:
            name = "a rank" if stream.rank is None else f"rank {stream.rank}"
            unreadable.append(f"Flight Recorder dump of {name}: {reason}")
    return CollectiveEvidence(find_collective_failures(dumps), tuple(unreadable))
