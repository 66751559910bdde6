"""Conditions that the queries of statistics share."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, Table, func


def within(
    table: Table, since: datetime, until: datetime, scope: Mapping[str, str | None]
) -> list[ColumnElement[bool]]:
    """Conditions of a period and a scope. The scope uses expressions, so that the planner uses the index on time."""
    return [
        table.c.ended_at >= since,
        table.c.ended_at < until,
        table.c.counted,
        *(func.coalesce(table.c[name], "") == value for name, value in scope.items() if value is not None),
    ]
