"""Counts that stop: who reads "10,000+" needs no more, and a queue of millions must not make a page wait.

A count of `COUNT_LIMIT` + 1 stands for more than `COUNT_LIMIT` (service.number_format).
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, literal, literal_column, select, union_all

from service.contracts.page import COUNT_LIMIT


def count(connection: Connection, wanted: Select[Any]) -> int:
    """How many rows `wanted` gives, `COUNT_LIMIT` + 1 at most."""
    return int(connection.execute(select(func.count()).select_from(_some(wanted))).scalar_one())


def by_value(
    connection: Connection, column: ColumnElement[str], values: Iterable[str], *conditions: ColumnElement[bool]
) -> dict[str, int]:
    """The same for each of these values of a column; values of no row are left out."""
    parts = [
        select(
            literal(value).label("value"),
            select(func.count())
            .select_from(_some(select(literal_column("1").label("one")).where(column == literal(value), *conditions)))
            .scalar_subquery()
            .label("many"),
        )
        for value in values
    ]
    return {row.value: row.many for row in connection.execute(union_all(*parts)) if row.many}


def _some(wanted: Select[Any]) -> Any:
    return wanted.limit(COUNT_LIMIT + 1).subquery("some")
