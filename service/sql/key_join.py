"""A list of keys to join with, passed as one JSON parameter on both databases."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

import orjson
from sqlalchemy import Connection, Row, Table, TextClause, text

from service.sql.bulk import is_postgres, sqlite_time
from service.sql.types import clean, utc

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
