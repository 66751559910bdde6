"""Conditions of a period and of which jobs count, which the queries of figures share."""

from datetime import datetime

from sqlalchemy import ColumnElement, Table, func

from service.sql.types import clean, utc
from service.statistics.records import Scope


def in_scope(table: Table, scope: Scope) -> list[ColumnElement[bool]]:
    """Conditions of a scope on a table with the columns that it names.

    They are expressions, so that the planner uses the index on time and not one on cluster or team.
    """
    return [func.coalesce(table.c[name], "") == clean(value) for name, value in scope.given().items()]


def ended_within(table: Table, since: datetime, until: datetime, scope: Scope) -> list[ColumnElement[bool]]:
    """Conditions of the jobs or failures of a scope that count and ended in [since, until)."""
    return [table.c.ended_at >= utc(since), table.c.ended_at < utc(until), table.c.counted, *in_scope(table, scope)]
