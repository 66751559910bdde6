"""The bases of readers and repositories: they work on one open connection, in the transaction of its session."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Row

from service.clock import Clock
from service.errors import DamagedData, damage_translated

log = logging.getLogger(__name__)
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


def undamaged(
    rows: Iterable[Row[*tuple[Any, ...]]],
    make: Callable[[Row[*tuple[Any, ...]]], Record],
    what: str,
    damaged: Callable[[Any], object] = lambda _: None,
) -> list[Record]:
    """The records of rows. One that can't be read is logged and left out, so that it does not keep the others waiting.

    Args:
        rows: with what identifies them as their first column.
        make: makes a record of a row.
        what: what a row is, for the log.
        damaged: called with what identifies a row that can't be read, such as to remove it.
    """
    found = []
    for row in list(rows):
        try:
            with damage_translated():
                found.append(make(row))
        except DamagedData as error:
            log.error("%s %s is left out: %s", what, row[0], error.detail)  # noqa: TRY400 - the trace says no more
            damaged(row[0])
    return found
