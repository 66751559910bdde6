"""The distinct values of an indexed column, by jumps from one value to the next: rows of equal values are not read."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Executable, Select, func, literal, select, union_all


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
