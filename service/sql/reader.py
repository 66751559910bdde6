"""The base of readers and repositories."""

from sqlalchemy import Connection


class Reader:
    """Reads, as a repository also writes, rows on one open connection, in the transaction of its session."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
