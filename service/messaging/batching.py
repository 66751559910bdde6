"""From records to what is handed over: read each, cut into batches, and say what may be committed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.contracts.event import JobCompletion
from service.dead_letters.records import DeadLetter
from service.errors import FieldError, UnreadableRecord
from service.formats.read_outcome import Skipped
from service.messaging.parsing import Parse
from service.messaging.record import Headers, Record, TopicPartition
from service.nodes.records import NodeReport

MAX_EVENTS = 500
MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One thing to hand over, with the bytes it was read from and their place; `record` where it came from a topic."""

    what: JobCompletion | NodeReport | DeadLetter
    value: bytes | None
    place: str
    record: Record | None = None


def read(
    parse: Parse, value: bytes | None, headers: Headers = (), *, cluster: str | None = None
) -> JobCompletion | NodeReport | Skipped | UnreadableRecord:
    """One record read; what can't be read is given back as the error that says why."""
    try:
        return parse(value, headers, cluster=cluster)
    except UnreadableRecord as error:
        return error
    except Exception as error:  # noqa: BLE001 - a reader that fails on one record must not stop all the others
        problem = FieldError("(whole record)", "something that this version can read", type(error).__name__)
        return UnreadableRecord(f"reading failed: {type(error).__name__}", (problem,))


def split_by_size(records: Sequence[Record], max_bytes: int = MAX_BYTES) -> Iterator[list[Record]]:
    """The records in order, in pieces of at most `max_bytes` of values (one larger record is a piece of its own)."""
    piece: list[Record] = []
    size = 0
    for record in records:
        if piece and size + record.size > max_bytes:
            yield piece
            piece, size = [], 0
        piece.append(record)
        size += record.size
    if piece:
        yield piece


def next_offsets(records: Sequence[Record]) -> dict[TopicPartition, int]:
    """The offset to read next of each partition, once all of these (in order, from the first unread) are finished."""
    out: dict[TopicPartition, int] = {}
    for record in records:
        out[record.at] = max(out.get(record.at, 0), record.offset + 1)
    return out
