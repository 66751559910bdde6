"""Expressions of SQL that SQLite and PostgreSQL write differently, or that SQLAlchemy lacks."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

import orjson
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Executable,
    Float,
    Row,
    Select,
    Table,
    TextClause,
    cast,
    func,
    literal,
    select,
    text,
    union_all,
)

from service.sql import bulk
from service.sql.bulk import is_postgres, sqlite_time
from service.sql.types import clean, utc

_DAY_S = 86_400.0


def seconds(connection: Connection, end: ColumnElement[Any], start: ColumnElement[Any]) -> ColumnElement[float]:
    """Seconds from `start` to `end`."""
    if bulk.is_postgres(connection):
        return cast(func.extract("epoch", end) - func.extract("epoch", start), Float)
    return func.round((func.julianday(end) - func.julianday(start)) * _DAY_S, 3, type_=Float)


def distinct_values(
    connection: Connection, column: Column[str], *where: ColumnElement[bool], most: int
) -> tuple[str, ...]:
    """The first values of a text column in alphabetical order, without the empty text.

    Each value costs one look into the index, in one query (a recursive common table expression).

    Args:
        connection: to the database.
        column: the first column of an index, or the first one after those that `where` fixes.
        where: which rows count.
        most: the number of values at most.
    """
    return tuple(connection.scalars(_walk(column, where, most)).all())


def values_by_set(column: Column[str], sets: Mapping[str, ColumnElement[bool]], *, most: int) -> Executable:
    """The query for the same of several sets of rows: the name of each, and a value."""
    each = {name: _walk(column, (where,), most, name).subquery() for name, where in sets.items()}
    return union_all(*(select(literal(name).label("name"), found.c.value) for name, found in each.items()))


def _walk(column: Column[str], where: tuple[ColumnElement[bool], ...], most: int, name: str = "") -> Select[Any]:
    walk = select(func.min(column).label("value")).where(*where, column > "").cte(f"walk{name}", recursive=True)
    following = select(func.min(column)).where(*where, column > walk.c.value).correlate(walk).scalar_subquery()
    walk = walk.union_all(select(following).where(walk.c.value.is_not(None)))
    return select(walk.c.value).where(walk.c.value.is_not(None)).limit(most)


Kind = Literal["text", "timestamptz", "bigint"]


class KeyJoin:
    """Rows of keys as a table named `wanted`.

    Args:
        connection: the connection whose dialect the SQL is for.
        fields: name and type of each field.
        rows: values in the order of `fields`.
    """

    def __init__(self, connection: Connection, fields: Mapping[str, Kind], rows: Iterable[tuple[Any, ...]]) -> None:
        self._connection = connection
        self._postgres = is_postgres(connection)
        objects = [{name: self._value(value) for name, value in zip(fields, row, strict=True)} for row in rows]
        self.empty = not objects
        self._given = orjson.dumps(objects).decode()
        if self._postgres:
            typed = ", ".join(f"{name} {kind}" for name, kind in fields.items())
            self.source = f"json_to_recordset(CAST(:given AS json)) AS wanted ({typed})"
            self.fields = {name: f"wanted.{name}" for name in fields}
        else:
            self.source = "json_each(:given) AS wanted"
            self.fields = {name: f"(wanted.value ->> '{name}')" for name in fields}

    def select(self, table: Table, where: str, *, more: str = "", **values: Any) -> list[Row[Any]]:
        """All columns of the rows of `table` that match `where`, in which `{name}` stands for a field."""
        if self.empty:
            return []
        condition = where.format_map(self.fields)
        sql = f"SELECT {table.name}.* FROM {self.source} CROSS JOIN {table.name} WHERE {condition} {more}"  # noqa: S608 - our own names
        made: TextClause = text(sql)
        return list(self._connection.execute(made.columns(*table.columns), {"given": self._given, **values}))

    def parameters(self, **values: Any) -> dict[str, Any]:
        """The parameters of a statement that reads from `source`."""
        return {"given": self._given, **values}

    def _value(self, value: Any) -> Any:
        if isinstance(value, datetime):
            return utc(value).isoformat() if self._postgres else sqlite_time(value)
        return clean(value) if isinstance(value, str) else value
