"""SQL conditions of a report's scope."""

from sqlalchemy import ColumnElement, Table, func

from service.goodput.records import Scope


def in_scope(table: Table, scope: Scope) -> list[ColumnElement[bool]]:
    """The conditions of a scope on a table with the columns `cluster` and `team`.

    They use expressions, so that the planner uses the index on time and not the one on cluster or team.
    """
    wanted = {"cluster": scope.cluster, "team": scope.team}
    return [func.coalesce(table.c[name], "") == value for name, value in wanted.items() if value is not None]
