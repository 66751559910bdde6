"""The bases of readers and repositories: they work on one open connection, in the transaction of its session."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Row

from service.clock import Clock

Record = TypeVar("Record")


class Reader:
    """Reads rows; a repository that writes them too is a subclass."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection


class TimedReader(Reader):
    """A reader whose questions, or whose repository's writes, depend on the time."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        super().__init__(connection)
        self._clock = clock


def record_of(make: Callable[..., Record], row: Row[*tuple[Any, ...]], **others: Any) -> Record:
    """A record of a row.

    Args:
        make: its dataclass. A field without a value in `others` has that of the column of the same name.
        row: with these columns.
        others: fields that are no columns, or are made of them.
    """
    names = (one.name for one in fields(cast("Any", make)))
    return make(**{name: getattr(row, name) for name in names if name not in others}, **others)
