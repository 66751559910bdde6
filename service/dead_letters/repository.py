"""Dead letters: records that could not be read, stored redacted and resent manually."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import (
    Column,
    Index,
    LargeBinary,
    Row,
    String,
    Table,
    Text,
    select,
    text,
    update,
)

from service.contracts.page import Page
from service.dead_letters.records import DeadLetter, StoredDeadLetter
from service.errors import DamagedData, NotFound, damage_translated
from service.sql import paging as cursors
from service.sql.bulk import upsert
from service.sql.packing import pack, unpack
from service.sql.reader import TimedReader, record_of
from service.sql.types import BigId, UtcDateTime, clean, metadata, utc

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("at", UtcDateTime, nullable=False, index=True),
    Column("place", String(500), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("reason", Text, nullable=False),
    Column("errors", LargeBinary, nullable=False),
    Column("text", LargeBinary, nullable=False),
    Column("resent_at", UtcDateTime),
    Index("uq_dead_letters_sha256_place", "sha256", "place", unique=True),
    Index(
        "ix_dead_letters_open",
        "id",
        postgresql_where=text("resent_at IS NULL"),
        sqlite_where=text("resent_at IS NULL"),
    ),
)


_PLACE = 500  # characters
_REASON = 2_000
_ERROR = ("field", "expected", "got")


class DeadLetterReader(TimedReader):
    """Reads dead letters."""

    def page(self, *, limit: int = 50, cursor: str | None = None) -> Page[StoredDeadLetter]:
        """Newest first.

        Raises:
            InvalidInput: a limit out of range (1-500), a cursor of another list.
        """
        cursors.check_limit(limit)
        wanted = select(dead_letters).order_by(dead_letters.c.id.desc()).limit(limit + 1)
        if cursor is not None:
            (before,) = cursors.decode(cursor, "dead-letters", int)
            wanted = wanted.where(dead_letters.c.id < before)
        rows = self._connection.execute(wanted).all()
        return cursors.page_of(rows, limit, _letter, "dead-letters", lambda last: (last.id,))

    def get(self, letter_id: int) -> StoredDeadLetter:
        """One dead letter.

        Raises:
            NotFound: no such letter.
        """
        row = None
        if 0 < letter_id < 2**63:
            row = self._connection.execute(select(dead_letters).where(dead_letters.c.id == letter_id)).first()
        if row is None:
            raise NotFound(f"no dead letter {letter_id}")
        return _letter(row)


class DeadLetterRepository(DeadLetterReader):
    """Reads and writes dead letters."""

    def add(self, letters: Sequence[DeadLetter]) -> list[int]:
        """Store dead letters; returns their ids in order. The same bytes from the same place are stored once."""
        now = self._clock.now()
        insert = (
            upsert(self._connection, dead_letters)
            .on_conflict_do_nothing(index_elements=["sha256", "place"])
            .returning(dead_letters.c.id)
        )
        ids = []
        for letter in letters:
            place = clean(letter.place[:_PLACE])
            row = {
                "at": utc(letter.at or now),
                "place": place,
                "sha256": letter.sha256,
                "reason": clean(letter.reason[:_REASON]),
                "errors": pack(list(letter.errors)),
                "text": pack(letter.text),
            }
            made = self._connection.execute(insert, row).scalar_one_or_none()
            ids.append(made if made is not None else self._earlier(letter.sha256, place))
        return ids

    def mark_resent(self, letter_id: int) -> None:
        """Record that it was resent now.

        Raises:
            NotFound: no such letter.
        """
        self.get(letter_id)
        self._connection.execute(
            update(dead_letters).where(dead_letters.c.id == letter_id).values(resent_at=self._clock.now())
        )

    def _earlier(self, sha256: str, place: str) -> int:
        found: int = self._connection.execute(
            select(dead_letters.c.id).where(dead_letters.c.sha256 == sha256, dead_letters.c.place == place)
        ).scalar_one()
        return found


def _letter(row: Row[Any]) -> StoredDeadLetter:
    """The dead letter of a row; one whose text can't be read still says where it came from."""
    errors: tuple[dict[str, Any], ...] = ()
    text = ""
    with suppress(DamagedData), damage_translated():
        errors = tuple({name: found.get(name) for name in _ERROR} for found in unpack(row.errors))
    with suppress(DamagedData):
        found = unpack(row.text)
        text = found if isinstance(found, str) else ""
    return record_of(StoredDeadLetter, row, errors=errors, text=text)
