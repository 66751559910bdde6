"""The distinct values of an indexed column, by jumps from one value to the next: rows of equal values are not read."""

from sqlalchemy import Column, ColumnElement, Connection, func, select


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
    walk = select(func.min(column).label("value")).where(*where, column > "").cte("walk", recursive=True)
    following = select(func.min(column)).where(*where, column > walk.c.value).correlate(walk).scalar_subquery()
    walk = walk.union_all(select(following).where(walk.c.value.is_not(None)))
    found = connection.execute(select(walk.c.value).where(walk.c.value.is_not(None)).limit(most))
    return tuple(found.scalars())
