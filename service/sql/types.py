"""What all tables share: their metadata, column types, and the conversions that all rows need."""

from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    DateTime,
    Dialect,
    Integer,
    MetaData,
)
from sqlalchemy.types import TypeDecorator

from service.errors import DAMAGED, DamagedData, damage_translated
from service.times import MAX_TIME, MIN_TIME

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


# SQLite makes only a column of type INTEGER an alias of the row id.
BigId = BigInteger().with_variant(Integer(), "sqlite")
HIGHEST_ID = 2**63 - 1


CHAIN_START = b"\0" * 32  # what the first row of a chain of hashes (SHA-256) includes as the hash of the previous one


def utc(at: datetime) -> datetime:
    """The same instant in UTC, clamped to the range of `datetime`."""
    if at.tzinfo is UTC:
        return at
    try:
        return at.astimezone(UTC)
    except OverflowError:
        return MIN_TIME if at.year == MIN_TIME.year else MAX_TIME


def clean(text: str) -> str:
    """Text that both databases can hold: PostgreSQL refuses null characters, and nothing encodes lone surrogates."""
    if text.isascii():
        return text.replace("\0", "�") if "\0" in text else text
    return text.replace("\0", "�").encode("utf-8", "replace").decode("utf-8")


def short(text: str | None, limit: int = 200) -> str | None:
    """`clean`, truncated to the length that an index or a list allows."""
    return None if text is None else clean(text[:limit])


def names_of(text: str | None) -> tuple[str, ...]:
    """The names of a column that holds them as a JSON list; none for NULL, or where it holds something else."""
    try:
        found = orjson.loads(text) if text else ()
    except orjson.JSONDecodeError:  # also of a type that is no text, which SQLite may hold
        return ()
    return tuple(one for one in found if type(one) is str) if isinstance(found, list) else ()


@damage_translated()
def names_read(text: str) -> tuple[str, ...]:
    """The names of a column on which access depends.

    Raises:
        DamagedData: it does not hold a JSON list of texts.
    """
    found = orjson.loads(text)
    if not isinstance(found, list) or not all(type(one) is str for one in found):
        raise DamagedData(DAMAGED)
    return tuple(found)


class UtcDateTime(TypeDecorator[datetime]):
    """An instant, aware and in UTC on both sides: `timestamptz` on PostgreSQL, sortable text on SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to the database value; a naive time is a programming error."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a naive time cannot be stored")
        at = utc(value)
        return at.replace(tzinfo=None) if dialect.name == "sqlite" else at

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        """As of the base class; SQLite may hold a text that is no time."""
        convert: Any = super().result_processor(dialect, coltype)
        if dialect.name != "sqlite":
            return convert

        def checked(value: Any) -> Any:
            try:
                return convert(value)
            except (TypeError, ValueError):
                raise DamagedData("a stored time is damaged: it is not what this service writes") from None

        return checked

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - the base class's signature
        """Convert from the database value."""
        if value is None:
            return None
        at: datetime = value
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
