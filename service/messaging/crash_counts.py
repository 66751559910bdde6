"""Finds the record that kills each process that handles it, so that it becomes a dead letter instead of a standstill.

Before a batch is handled, a note with the committed offset of each of its partitions says how often handling began
there. A killed process leaves the note behind, and its successor finds it, on any machine. After that the records are
handled one by one. A record at which processes were killed `ALONE` times while they handled nothing else is given up.
A process whose partition is revoked meanwhile cannot take its note back, and counts as killed; what it stored stays.
"""

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from service.errors import FaultlineError, Unavailable, UnreadableRecord
from service.messaging import batching
from service.messaging.record import Record, TopicPartition
from service.messaging.source import Committed, Source

log = logging.getLogger(__name__)

# Judgement: machines and people kill processes too, but hardly so often at one record, which takes milliseconds.
BATCHES: Final = 2
ALONE: Final = 4
# The batch that a process was killed at has at most so many records; after them, batches are as large as before.
ONE_BY_ONE: Final = batching.MAX_EVENTS

_NOTE = re.compile(r"faultline/1 batches=(?P<batches>\d{1,6}) alone=(?P<alone>\d{1,6})")


@dataclass(frozen=True, slots=True)
class _Attempts:
    """How often handling began at an offset and has not ended: with a batch, and with the first record alone."""

    offset: int
    batches: int = 0
    alone: int = 0

    @property
    def committed(self) -> Committed:
        """What is committed to say so."""
        counted = self.batches or self.alone
        return Committed(self.offset, f"faultline/1 batches={self.batches} alone={self.alone}" if counted else "")

    def once_more(self, *, alone: bool) -> "_Attempts":
        """With one more beginning."""
        return replace(self, alone=self.alone + 1) if alone else replace(self, batches=self.batches + 1)


class CrashCounts:
    """Counts the processes that were killed while they handled records, in the notes of committed offsets.

    Args:
        source: where the records come from, and where their offsets are committed.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._found: dict[TopicPartition, _Attempts] = {}  # the notes that were found, of assigned partitions
        self._in_progress: dict[TopicPartition, _Attempts] = {}  # where handling has begun; as it was before
        self._one_by_one = 0

    def pieces(self, records: Sequence[Record], max_bytes: int) -> Iterator[list[Record]]:
        """Yield the records in order: in pieces of at most `max_bytes`, or one by one where a process was killed."""
        for place, offset in _first_offsets(records).items():
            attempts = self._count_at(place, offset)
            if attempts.batches >= BATCHES or attempts.alone:
                log.warning(
                    "processes killed while they handled records at %s/%d/%d: %d; the next ones are handled one by one",
                    *(*place, offset, attempts.batches + attempts.alone),
                )
                self._one_by_one = ONE_BY_ONE
        alone, rest = records[: self._one_by_one], records[self._one_by_one :]
        for record in alone:
            self._one_by_one -= 1
            yield [record]
        yield from batching.split_by_size(rest, max_bytes)

    @contextmanager
    def handling(self, records: Sequence[Record]) -> Iterator[UnreadableRecord | None]:
        """Note that these records are being handled; an error takes the note back, the commit behind them replaces it.

        Yields the reason to give up if it is a single record that has killed too many processes, None otherwise.
        """
        before = {place: self._count_at(place, offset) for place, offset in _first_offsets(records).items()}
        alone = len(records) == 1
        if alone and (times := next(iter(before.values())).alone) >= ALONE:
            yield UnreadableRecord(f"could not be handled: {times} processes were killed while they handled it alone")
            return
        self._commit({place: attempts.once_more(alone=alone) for place, attempts in before.items()})
        self._in_progress = before
        try:
            yield None
        except Exception:
            self.take_back()
            raise
        finally:
            self._in_progress = {}

    def take_back(self) -> None:
        """Take the note back: what comes next, such as a wait for the database, says nothing of the records."""
        self._commit(self._in_progress)
        self._in_progress = {}

    def forget(self, places: Collection[TopicPartition]) -> None:
        """Forget revoked partitions: others may write their notes now."""
        for place in places:
            self._found.pop(place, None)
            self._in_progress.pop(place, None)

    def _count_at(self, place: TopicPartition, offset: int) -> _Attempts:
        if place not in self._found:
            self._found[place] = self._read(place)
        found = self._found[place]
        return found if found.offset == offset else _Attempts(offset)

    def _read(self, place: TopicPartition) -> _Attempts:
        try:
            committed = self._source.committed(place)
        except Unavailable as error:
            log.info("%s", error.detail)
            committed = None
        match = None if committed is None else _NOTE.fullmatch(committed.note)
        if committed is None or match is None:
            return _Attempts(-1)
        return _Attempts(committed.offset, int(match["batches"]), int(match["alone"]))

    def _commit(self, notes: Mapping[TopicPartition, _Attempts]) -> None:
        """Write notes; without a broker nothing is counted, which only delays that a record is given up."""
        if not notes:
            return
        try:
            self._source.commit({place: attempts.committed for place, attempts in notes.items()})
        except FaultlineError as error:
            log.info("%s", error.detail)


def _first_offsets(records: Sequence[Record]) -> dict[TopicPartition, int]:
    """Of each partition the first offset of these records, which are in order."""
    first: dict[TopicPartition, int] = {}
    for record in records:
        first.setdefault(record.at, record.offset)
    return first
