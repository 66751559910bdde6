"""Counts with an upper bound: a page shows "10,000+" instead of counting millions of rows.

A count of `COUNT_LIMIT` + 1 stands for more than `COUNT_LIMIT` (service.contracts.page).
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, literal, literal_column, select, union_all

from service.contracts.page import COUNT_LIMIT


def count(connection: Connection, wanted: Select[Any]) -> int:
    """The number of rows of `wanted`, at most `COUNT_LIMIT` + 1."""
    return int(connection.execute(select(func.count()).select_from(_some(wanted))).scalar_one())


def by_value(
    connection: Connection, column: ColumnElement[str], values: Iterable[str], *conditions: ColumnElement[bool]
) -> dict[str, int]:
    """The number of rows for each value of a column, at most `COUNT_LIMIT` + 1; values without rows are omitted."""
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
