"""Stores events from files in the same way as events from a topic."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from service.backoff import Backoff
from service.clock import Clock
from service.contracts.event import MAX_EVENT_BYTES, JobCompletion
from service.dead_letters.records import DeadLetter
from service.errors import FieldError, InvalidInput, Unavailable, UnreadableRecord
from service.formats.field_reading import Skipped
from service.messaging import batching
from service.messaging.batch_result import BatchHandler, BatchOutcome
from service.messaging.batching import BatchItem, Parse
from service.messaging.dead_letters import dead_letter
from service.messaging.json_lines import Line, lines
from service.messaging.retrying_handler import RetryingHandler
from service.nodes.records import NodeReport

MAX_WAIT_S = 60.0


@dataclass
class Summary:
    """Counts of lines by result. `broken`: files that could not be read to their end, with the reason."""

    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    @property
    def bad(self) -> int:
        """Number of lines that became dead letters."""
        return self.counts["bad"]

    def text(self) -> str:
        """Return one line for people."""
        names = ("accepted", "duplicate", "conflict", "skipped", "bad")
        return ", ".join(f"{self.counts[name]} {name}" for name in names)


class FileReplay:
    """Stores the lines of files in batches.

    Args:
        parse: parses one line.
        handle: stores a batch.
        cluster: cluster name for records without one.
        progress: called with the number of lines read, after each batch.
    """

    def __init__(
        self,
        parse: Parse,
        handle: BatchHandler,
        *,
        clock: Clock,
        cluster: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._parse = parse
        self._handle = handle
        self._clock = clock
        self._cluster = cluster
        self._progress = progress
        self._handler = RetryingHandler(self._counted, self._wait)
        self._backoff = Backoff()
        self._waiting_since = 0.0
        self._summary = Summary()

    def run(self, names: Sequence[str]) -> Summary:
        """Store all files in order.

        Raises:
            Unavailable: the database does not answer for a minute; a second run stores nothing twice.
        """
        self._summary = Summary()
        read = 0
        for pieces in self._pieces(names):
            unprocessable = self._handler.store_items(pieces)
            self._summary.counts["bad"] += len(unprocessable)
            read += len(pieces)
            if self._progress is not None:
                self._progress(read)
        return self._summary

    def _pieces(self, names: Sequence[str]) -> Iterator[list[BatchItem]]:
        piece: list[BatchItem] = []
        size = 0
        for name in names:
            for item in self._items(name):
                length = len(item.value or b"")
                if piece and (len(piece) >= batching.MAX_EVENTS or size + length > batching.MAX_BYTES):
                    yield piece
                    piece, size = [], 0
                piece.append(item)
                size += length
        if piece:
            yield piece

    def _items(self, name: str) -> Iterator[BatchItem]:
        try:
            for line in lines(name):
                found = self._read(line)
                if isinstance(found, Skipped):
                    self._summary.counts["skipped"] += 1
                    continue
                place = f"replay {name}:{line.number}"
                if isinstance(found, UnreadableRecord):
                    self._summary.counts["bad"] += 1
                    letter = dead_letter(line.value, place, found, self._clock.now())
                    yield BatchItem(letter if line.sha256 is None else replace(letter, sha256=line.sha256), None, place)
                else:
                    yield BatchItem(found, line.value, place)
        except InvalidInput as error:
            self._summary.broken.append(error.detail)

    def _read(self, line: Line) -> JobCompletion | NodeReport | Skipped | UnreadableRecord:
        if line.too_long:
            problem = FieldError("(whole record)", f"at most {MAX_EVENT_BYTES} bytes", f"{line.size} bytes")
            return UnreadableRecord(f"larger than {MAX_EVENT_BYTES} bytes", (problem,))
        return batching.read(self._parse, line.value, cluster=self._cluster, source="file")

    def _counted(self, events: Sequence[JobCompletion], dead: Sequence[DeadLetter] = ()) -> BatchOutcome:
        outcome = self._handle(events, dead)
        self._summary.counts.update(one.kind for one in outcome.events)
        return outcome

    def _wait(self, error: Unavailable, times: int) -> None:
        now = self._clock.monotonic()
        if times == 1:
            self._backoff.reset()
            self._waiting_since = now
        if now - self._waiting_since > MAX_WAIT_S:
            raise error
        self._clock.sleep(self._backoff.next())
