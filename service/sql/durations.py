"""Lengths of time in SQL, on SQLite and PostgreSQL."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Float, cast, func

from service.sql import bulk

_DAY_S = 86_400.0


def seconds(connection: Connection, end: ColumnElement[Any], start: ColumnElement[Any]) -> ColumnElement[float]:
    """Seconds from `start` to `end`."""
    if bulk.is_postgres(connection):
        return cast(func.extract("epoch", end) - func.extract("epoch", start), Float)
    return func.round((func.julianday(end) - func.julianday(start)) * _DAY_S, 3, type_=Float)
