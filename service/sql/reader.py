"""The bases of readers and repositories: they work on one open connection, in the transaction of its session."""

from sqlalchemy import Connection

from service.clock import Clock


class Reader:
    """Reads rows; a repository that writes them too is a subclass."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection


class TimedReader(Reader):
    """A reader whose questions, or whose repository's writes, depend on the time."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        super().__init__(connection)
        self._clock = clock
