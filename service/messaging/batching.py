"""Reads records, splits them into batches, and computes the offsets to commit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

from service.contracts.event import JobCompletion
from service.dead_letters.records import DeadLetter
from service.errors import FieldError, UnreadableRecord
from service.formats.field_reading import Skipped
from service.messaging.record import Headers, Record, TopicPartition, UnreadBatch
from service.nodes.records import NodeReport

Found = TypeVar("Found", bound=JobCompletion | NodeReport | Skipped)
Found_co = TypeVar("Found_co", bound=JobCompletion | NodeReport | Skipped, covariant=True)


class RecordParser(Protocol[Found_co]):
    """Parses bytes to a job completion (formats.recognise.parse) or a node report (formats.node_events.parse)."""

    def __call__(self, value: bytes | None, headers: Headers = (), *, cluster: str | None = None) -> Found_co:
        """Parse one record.

        Raises:
            UnreadableRecord: the record is wrong; the message says where.
        """
        ...


Parse = RecordParser[JobCompletion | NodeReport | Skipped]

MAX_EVENTS = 500
MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One event or dead letter with its raw bytes and their location; `record` is set if it came from a topic."""

    content: JobCompletion | NodeReport | DeadLetter
    value: bytes | None
    place: str
    record: Record | None = None


def read(
    parse: RecordParser[Found], value: bytes | None, headers: Headers = (), *, cluster: str | None = None, source: str
) -> Found | UnreadableRecord:
    """Parse one record from a source such as "topic/NAME"; return the error if it is unreadable."""
    if isinstance(value, UnreadBatch):
        return UnreadableRecord(value.reason, (FieldError("(whole record)", "a batch that can be unpacked"),))
    try:
        found = parse(value, headers, cluster=cluster)
        return cast("Found", found.received_from(source)) if isinstance(found, JobCompletion) else found
    except UnreadableRecord as error:
        error.__traceback__ = error.__context__ = None  # as a value, it should not keep the frames of the reader
        return error
    except Exception as error:  # noqa: BLE001 - a parser failure on one record must not stop the others
        problem = FieldError("(whole record)", "something that this version can read", type(error).__name__)
        return UnreadableRecord(f"reading failed: {type(error).__name__}", (problem,))


def split_by_size(records: Sequence[Record], max_bytes: int = MAX_BYTES) -> Iterator[list[Record]]:
    """Yield the records in order, in pieces of at most `max_bytes` of values (a larger record is its own piece)."""
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
    """Return the next offset of each partition after these records, which are in order."""
    out: dict[TopicPartition, int] = {}
    for record in records:
        out[record.at] = max(out.get(record.at, 0), record.offset + 1)
    return out
