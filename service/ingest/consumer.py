"""The only loop: poll, read, handle, dead letters, and the offsets last."""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from service.batch import Handle
from service.clock import Clock
from service.events import JobCompletion
from service.formats.outcome import Skipped
from service.ingest.deadletter import DeadLetterTopic
from service.ingest.source import Source
from service.kafka.record import Headers
from service.telemetry import Telemetry

log = logging.getLogger(__name__)


class Stop(Protocol):
    """Whether to end; a threading.Event is one."""

    def is_set(self) -> bool:
        """Whether the end was asked for."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Return after `timeout` seconds, or as soon as the end is asked for; then True."""
        ...


class Parse(Protocol):
    """Bytes → one event (service.formats.recognise.parse)."""

    def __call__(
        self, value: bytes | None, headers: Headers = (), *, cluster: str | None = None
    ) -> JobCompletion | Skipped:
        """One record read.

        Raises:
            UnreadableRecord: says what is wrong.
        """
        ...


class Consumer:
    """Reads a source until told to stop.

    Args:
        source: where records come from; closed when `run` ends.
        parse: reads one record.
        handle: stores a batch; returns after the commit.
        dead_letters: the topic of what can't be read.
        idle: called between polls, every few seconds at most (logs that came late).
        dead_letter_limit: so many unreadable records in a row end the run.
    """

    def __init__(
        self,
        source: Source,
        parse: Parse,
        handle: Handle,
        dead_letters: DeadLetterTopic,
        *,
        clock: Clock,
        telemetry: Telemetry,
        idle: Callable[[], object] | None = None,
        dead_letter_limit: int = 1_000,
    ) -> None:
        self._source = source
        self._parse = parse
        self._handle = handle
        self._dead_letters = dead_letters
        self._clock = clock
        self._telemetry = telemetry
        self._idle = idle
        self._limit = dead_letter_limit

    def run(self, stop: Stop) -> None:
        """Consume until `stop` is set: the batch in hand is finished and committed, then the source left.

        Raises:
            TooManyDeadLetters: `dead_letter_limit` unreadable records in a row; what was before is committed.
            ConfigurationError: the broker refuses for good, or another member has this one's name.
        """
        raise NotImplementedError


__all__: Sequence[str] = ("Consumer", "Parse", "Stop")
