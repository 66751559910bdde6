"""Conditions of a period and of which jobs count, which the queries of figures share."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Table, bindparam, func

from service.sql.types import UtcDateTime, clean, utc
from service.statistics.records import Scope


def in_scope(table: Table, scope: Scope) -> list[ColumnElement[bool]]:
    """Conditions of a scope on a table with the columns that it names.

    They are expressions, so that the planner uses the index on time and not one on cluster or team.
    """
    return [func.coalesce(table.c[name], "") == clean(value) for name, value in scope.given().items()]


def ended_within(table: Table, since: datetime, until: datetime, scope: Scope) -> list[ColumnElement[bool]]:
    """Conditions of the jobs or failures of a scope that count and ended in [since, until)."""
    return [table.c.ended_at >= utc(since), table.c.ended_at < utc(until), table.c.counted, *in_scope(table, scope)]


def in_numbered_range(table: Table, number: int, names: Collection[str]) -> list[ColumnElement[bool]]:
    """Conditions of jobs or failures that ended in a range, with parameters: a statement that is made once has them.

    Args:
        table: with the columns `ended_at` and `names`.
        number: of the range; `range_values` gives the parameters of all.
        names: the columns by which a scope narrows.
    """
    since, until = (bindparam(f"{name}{number}", type_=UtcDateTime) for name in ("since", "until"))
    within = [table.c.ended_at >= since, table.c.ended_at < until]
    return [*within, *(func.coalesce(table.c[name], "") == bindparam(name) for name in names)]


def range_values(scope: Scope, ranges: Sequence[tuple[datetime, datetime]]) -> dict[str, Any]:
    """The parameters of `in_numbered_range` for each of these ranges [since, until)."""
    values: dict[str, Any] = {name: clean(value) for name, value in scope.given().items()}
    for number, (since, until) in enumerate(ranges):
        values |= {f"since{number}": utc(since), f"until{number}": utc(until)}
    return values
