"""Pages of lists: cursors, and counts with an upper bound.

A cursor is the end of the last page as one opaque string. A page shows "10,000+" instead of counting millions of rows:
a count of `COUNT_LIMIT` + 1 stands for more than `COUNT_LIMIT` (service.contracts.page).
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Select,
    func,
    literal,
    literal_column,
    select,
    union_all,
)

from service.contracts.page import COUNT_LIMIT, Page
from service.errors import FieldError, InvalidInput
from service.sql.types import utc

MAX_LIMIT = 500
Item = TypeVar("Item")


def check_limit(limit: int) -> int:
    """`limit`, if it is valid.

    Raises:
        InvalidInput: it is not from 1 to 500.
    """
    if not 1 <= limit <= MAX_LIMIT:
        expected = f"an integer from 1 to {MAX_LIMIT}"
        raise InvalidInput(f"limit: expected {expected}", (FieldError("limit", expected, str(limit)),))
    return limit


def encode(kind: str, *position: Any) -> str:
    """A cursor of the list `kind` (its name and order) that continues after `position`."""
    return base64.urlsafe_b64encode(orjson.dumps([kind, *position])).decode("ascii").rstrip("=")


def decode(cursor: str, kind: str, *types: type) -> tuple[Any, ...]:
    """The position that a cursor encodes, whose parts have the types `types`.

    Raises:
        InvalidInput: not a cursor, or one of another list or order.
    """
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        parts = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        raise bad(cursor) from None
    if not isinstance(parts, list) or len(parts) != len(types) + 1 or parts[0] != kind:
        raise bad(cursor)
    if any(type(part) is not expected for part, expected in zip(parts[1:], types, strict=True)):
        raise bad(cursor)
    if any(type(part) is int and not 0 <= part < 2**63 for part in parts[1:]):
        raise bad(cursor)
    return tuple(parts[1:])


def instant(cursor: str, position: str) -> datetime:
    """The time in a part of a position, in UTC.

    Raises:
        InvalidInput: it is not a time.
    """
    try:
        return utc(datetime.fromisoformat(position).replace(tzinfo=UTC))
    except ValueError:
        raise bad(cursor) from None


def bad(cursor: str) -> InvalidInput:
    """The error for an invalid cursor."""
    expected = "the next_cursor of this list in this order, unchanged"
    return InvalidInput(f"cursor: expected {expected}", (FieldError("cursor", expected, cursor[:80]),))


def page_of(
    rows: Sequence[Any],
    limit: int,
    item_of: Callable[[Any], Item],
    kind: str,
    position: Callable[[Item], tuple[Any, ...]],
) -> Page[Item]:
    """The page that the first `limit` of at most `limit` + 1 rows make; with one more row, it has a cursor.

    Args:
        rows: in the order of the list.
        limit: the size of the page, at least 1.
        item_of: makes an item of a row.
        kind: the list, as in `encode`.
        position: that of an item, from which the list continues.
    """
    items = tuple(item_of(row) for row in rows[:limit])
    return Page(items, encode(kind, *position(items[-1])) if len(rows) > limit else None)


def bounded(wanted: Select[Any]) -> Select[Any]:
    """The query for the number of rows of `wanted`, at most `COUNT_LIMIT` + 1."""
    return select(func.count()).select_from(wanted.limit(COUNT_LIMIT + 1).subquery("some"))


def bounded_counts(column: ColumnElement[str], values: Iterable[str], *conditions: ColumnElement[bool]) -> Executable:
    """The query for the number of rows for each value of a column, at most `COUNT_LIMIT` + 1 each."""
    parts = [
        select(
            literal(value).label("value"),
            bounded(select(literal_column("1").label("one")).where(column == literal(value), *conditions))
            .scalar_subquery()
            .label("many"),
        )
        for value in values
    ]
    return union_all(*parts)


def read_counts(connection: Connection, wanted: Executable) -> dict[str, int]:
    """The result of `bounded_counts`, without values that no row has."""
    return {row.value: row.many for row in connection.execute(wanted) if row.many}
