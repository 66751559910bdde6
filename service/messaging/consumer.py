"""The consumer loop: poll, parse, store, send dead letters, and commit the offsets last."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from service.backoff import Backoff
from service.clock import Clock
from service.dead_letters.records import DeadLetter
from service.errors import Unavailable, UnreadableRecord
from service.formats.field_reading import Skipped
from service.messaging import batching
from service.messaging.batching import BatchItem, Parse
from service.messaging.crash_counts import CrashCounts
from service.messaging.dead_letters import DeadLetterLimit, DeadLetterTopic, Rejected, dead_letter
from service.messaging.record import Record, TopicPartition
from service.messaging.retrying_handler import RetryingHandler, StoreBatch
from service.messaging.source import Committed, Source
from service.periodic import PeriodicTask
from service.shutdown import ShutdownFlag
from service.telemetry import Telemetry

log = logging.getLogger(__name__)

POLL_S = 0.5
LAG_EVERY_S = 10.0


class _Stopped(Exception):
    """Shutdown was requested while waiting; the current batch is not committed and will be read again."""


@dataclass(frozen=True, slots=True)
class ConsumerLimits:
    """Limits of a consumer.

    Attributes:
        dead_letters: consecutive unreadable records that stop it.
        events: records of one poll at most.
        bytes: values of one batch at most, in bytes.
    """

    dead_letters: int = 1_000
    events: int = batching.MAX_EVENTS
    bytes: int = batching.MAX_BYTES


DEFAULT_LIMITS: Final = ConsumerLimits()


class Consumer:
    """Consumes a source until shutdown.

    Args:
        source: the source of records; closed when `run` ends.
        parse: parses one record.
        handle: stores a batch; returns after the commit.
        dead_letters: the topic for unreadable records.
        idle: called every few seconds in a background thread (late logs).
    """

    def __init__(
        self,
        source: Source,
        parse: Parse,
        handle: StoreBatch,
        dead_letters: DeadLetterTopic,
        *,
        clock: Clock,
        telemetry: Telemetry,
        idle: Callable[[], object] | None = None,
        limits: ConsumerLimits = DEFAULT_LIMITS,
    ) -> None:
        self._source = source
        self._parse = parse
        self._dead_letters = dead_letters
        self._clock = clock
        self._telemetry = telemetry
        self._idle_task = None if idle is None else PeriodicTask(idle, name="late logs")
        self._dead_letter_limit = DeadLetterLimit(limits.dead_letters)
        self._limits = limits
        self._handler = RetryingHandler(handle, self._wait_for_database, self._ours)
        self._crashes = CrashCounts(source)
        self._backoff = Backoff()
        self._stop: ShutdownFlag
        self._lost: set[TopicPartition] = set()  # revoked since the last poll that returned records
        self._due: dict[TopicPartition, int] = {}  # stored, but not yet committed
        self._next_lag = clock.monotonic()
        self._measured: frozenset[str] = frozenset()  # topics whose lag is in the metrics

    def run(self, stop: ShutdownFlag) -> None:
        """Consume until `stop` is set; the current batch is stored and committed before the source is closed.

        Raises:
            TooManyDeadLetters: too many unreadable records in a row; everything before is committed.
            ConfigurationError: the broker refuses permanently, or another member has this name.
        """
        self._stop = stop
        if self._idle_task is not None:
            self._idle_task.start()
        try:
            while not stop.is_set():
                self._turn()
        except _Stopped:
            log.info("stopped while waiting; the current batch will be read again")
        finally:
            if self._idle_task is not None:
                self._idle_task.close()
            self._source.close()

    def _turn(self) -> None:
        try:
            records = self._source.poll(self._limits.events, POLL_S)
        except Unavailable as error:
            pause = self._backoff.next()
            log.warning("%s; trying again in %.1f s", error.detail, pause)
            self._note_lost()
            self._forget_lag()
            self._stop.wait(pause)
            return
        self._backoff.reset()
        self._note_lost()
        self._lost.clear()  # the new records were read after the revocation
        self._measure_lag()
        if not records:
            self._commit()
        for piece in self._crashes.pieces(records, self._limits.bytes):
            self._batch([record for record in piece if record.at not in self._lost])
            if self._stop.is_set():
                return

    def _batch(self, records: Sequence[Record]) -> None:
        with self._crashes.handling(records) as given_up:
            taken, items, skipped = self._read(records, given_up)
            unprocessable = self._handler.store_items(items)
            if items:
                self._telemetry.database_up.set(1)
            self._send_dead_letters([*(item for item in items if isinstance(item.content, DeadLetter)), *unprocessable])
        self._due.update(batching.next_offsets([record for record in taken if record.at not in self._lost]))
        self._commit()
        if skipped:
            self._telemetry.events.labels("skipped").inc(skipped)
        self._dead_letter_limit.note(taken, items, unprocessable)

    def _read(
        self, records: Sequence[Record], given_up: UnreadableRecord | None
    ) -> tuple[list[Record], list[BatchItem], int]:
        """Parse records up to the dead-letter limit; return those taken, their items, and the number skipped.

        With a reason to give up, they are not even parsed.
        """
        taken: list[Record] = []
        items: list[BatchItem] = []
        skipped = 0
        streak = self._dead_letter_limit.streak
        for record in records:
            if streak >= self._dead_letter_limit.limit:
                break
            taken.append(record)
            found = given_up or batching.read(
                self._parse, record.value, record.headers, cluster=record.cluster, source=f"topic/{record.topic}"
            )
            streak = streak + 1 if isinstance(found, UnreadableRecord) else 0
            if isinstance(found, Skipped):
                skipped += 1
            elif isinstance(found, UnreadableRecord):
                letter = dead_letter(record.value, record.place, found, self._clock.now())
                items.append(BatchItem(letter, record.value, record.place, record))
            else:
                items.append(BatchItem(found, record.value, record.place, record))
        return taken, items, skipped

    def _send_dead_letters(self, items: Sequence[BatchItem]) -> None:
        times = 0
        while True:
            rejected = [
                Rejected(item.record, item.content)
                for item in items
                if item.record is not None and isinstance(item.content, DeadLetter) and self._ours(item)
            ]
            try:
                if rejected:
                    self._dead_letters.send(rejected)
            except Unavailable as error:
                times += 1
                self._wait(error, times)
            else:
                break
        if times:
            self._source.resume()

    def _commit(self) -> None:
        """Commit finished offsets; if the broker does not accept them, they go with the next commit."""
        if not self._due:
            return
        try:
            self._source.commit({place: Committed(offset) for place, offset in self._due.items()})
        except Unavailable as error:
            log.warning("%s; offsets will be committed with the next batch", error.detail)
            self._forget_lag()  # each record that was read before waits for this: the next turn may be minutes away
        else:
            self._due.clear()

    def _wait_for_database(self, error: Unavailable, times: int) -> None:
        self._telemetry.database_up.set(0)
        self._wait(error, times)
        self._source.resume()

    def _wait(self, error: Unavailable, times: int) -> None:
        """Wait before the next try, without losing the group membership."""
        if times == 1:
            self._backoff.reset()
        pause = self._backoff.next()
        log.warning("%s; the batch waits, trying again in %.1f s", error.detail, pause)
        self._crashes.take_back()
        self._source.pause()
        deadline = self._clock.monotonic() + pause
        while (left := deadline - self._clock.monotonic()) > 0:
            if self._stop.wait(min(left, POLL_S)):
                raise _Stopped
            try:
                self._source.poll(1, 0.05)
            except Unavailable as also:
                log.info("%s", also.detail)
            self._note_lost()
            self._measure_lag()

    def _note_lost(self) -> None:
        gone = self._source.take_revoked()
        self._lost |= gone
        self._crashes.forget(gone)
        for place in gone:
            self._due.pop(place, None)

    def _ours(self, item: BatchItem) -> bool:
        return item.record is None or item.record.at not in self._lost

    def _measure_lag(self) -> None:
        if self._clock.monotonic() < self._next_lag:
            return
        self._next_lag = self._clock.monotonic() + LAG_EVERY_S
        try:
            lag = self._source.lag()
        except Unavailable as error:
            log.info("%s", error.detail)
            self._forget_lag()
            return
        if not lag:
            self._forget_lag()
        for topic, records in lag.items():
            self._telemetry.lag.labels(topic).set(records)
        self._measured = frozenset(lag)

    def _forget_lag(self) -> None:
        """Remove the metric until the broker answers: an alert asks whether it is missing."""
        for topic in self._measured:
            self._telemetry.lag.remove(topic)
        self._measured = frozenset()
