"""The way into the store: one transaction that writes, one snapshot that reads, and nothing in between."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.clock import Clock, SystemClock
from service.store.dead_letters import DeadLetters
from service.store.failures import Failures
from service.store.jobs import Jobs
from service.store.outbox import Outbox
from service.store.pending_logs import PendingLogs
from service.store.statistics import Statistics
from service.store.tokens import Tokens


class UnitOfWork:
    """The repositories over one connection."""

    jobs: Jobs
    failures: Failures
    dead_letters: DeadLetters
    outbox: Outbox
    tokens: Tokens
    pending_logs: PendingLogs
    statistics: Statistics


class Store:
    """A database that holds everything Faultline knows. Safe to share between threads.

    Args:
        url: `sqlite:///file` (relative) or `sqlite:////file`, or `postgresql://user:password@host:port/name`.
        clock: the source of "now" for rows that carry a time of their own.

    Raises:
        ConfigurationError: the URL is not one of these; names FAULTLINE_DATABASE_URL, never shows credentials.
    """

    def __init__(self, url: str, *, clock: Clock | None = None, pool_size: int = 5) -> None:
        self._url = url
        self._clock = clock or SystemClock()
        self._pool_size = pool_size

    @contextmanager
    def unit_of_work(self) -> Iterator[UnitOfWork]:
        """One transaction: committed when the block ends, rolled back when it raises.

        Raises:
            Unavailable: the database does not answer (or is locked); nothing was stored.
        """
        raise NotImplementedError

    @contextmanager
    def reading(self) -> Iterator[UnitOfWork]:
        """One consistent snapshot; whatever is written in it fails.

        Raises:
            Unavailable: the database does not answer.
        """
        raise NotImplementedError

    def check(self) -> None:
        """Return where the schema is the one this version was written for.

        Raises:
            ConfigurationError: it is not; says which revision is there and what to run.
            Unavailable: the database does not answer.
        """
        raise NotImplementedError

    def ping(self) -> None:
        """One round trip.

        Raises:
            Unavailable: the database does not answer.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Give all connections back."""
