"""The outbox: messages written in the transaction that causes them, and leased for sending afterwards."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, or_, select, update

from service.deliveries.records import OutboxMessage, StoredMessage
from service.deliveries.tables import outbox
from service.errors import DamagedData
from service.sql import bulk
from service.sql.packing import dump, unpack
from service.sql.reader import TimedReader, undamaged
from service.sql.types import short, utc

_COLUMNS = ("type", "key", "payload", "created_at", "available_at", "attempts")


def payload_of(column: bytes) -> dict[str, Any]:
    """The content of a message.

    Raises:
        DamagedData: it is none.
    """
    found = unpack(column)
    if not isinstance(found, dict):
        raise DamagedData("the stored content of a message is damaged: it is no JSON object")
    return found


class OutboxReader(TimedReader):
    """Reads outbox messages."""

    def waiting(self) -> bool:
        """Whether a message can be leased now."""
        now = self._clock.now()
        free = or_(outbox.c.leased_until.is_(None), outbox.c.leased_until <= now)
        wanted = select(outbox.c.id).where(outbox.c.done_at.is_(None), outbox.c.available_at <= now, free).limit(1)
        return self._connection.execute(wanted).first() is not None


class OutboxRepository(OutboxReader):
    """Reads and writes outbox messages."""

    def add(self, messages: Sequence[OutboxMessage]) -> None:
        """Store messages, in order."""
        now = utc(self._clock.now())
        rows = [
            (
                message.type,
                short(message.key, 500),
                dump(message.payload),  # short-lived, so not worth compressing
                now,
                now,
                0,
            )
            for message in messages
        ]
        bulk.append(self._connection, outbox, _COLUMNS, rows)

    def pass_over(self, before: datetime, *, limit: int) -> int:
        """Mark waiting messages created before a time that have no receivers as done; returns how many."""
        old = (
            select(outbox.c.id)
            .where(outbox.c.done_at.is_(None), outbox.c.available_at < utc(before))
            .order_by(outbox.c.available_at, outbox.c.id)
            .limit(limit)
        )
        return self._connection.execute(
            update(outbox).where(outbox.c.id.in_(old)).values(done_at=self._clock.now())
        ).rowcount

    def lease(self, owner: str, *, limit: int, seconds: float) -> list[StoredMessage]:
        """At most `limit` waiting messages, oldest first, leased to `owner` for `seconds`.

        Damaged ones are done: nothing can be sent of them.
        """
        now = self._clock.now()
        wanted = (
            select(outbox.c.id)
            .where(
                outbox.c.done_at.is_(None),
                outbox.c.available_at <= now,
                or_(outbox.c.leased_until.is_(None), outbox.c.leased_until <= now),
            )
            .order_by(outbox.c.available_at, outbox.c.id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        ids = list(self._connection.execute(wanted).scalars())
        if not ids:
            return []
        self._connection.execute(
            update(outbox)
            .where(outbox.c.id.in_(ids))
            .values(leased_by=owner, leased_until=now + timedelta(seconds=seconds), attempts=outbox.c.attempts + 1)
        )
        rows = self._connection.execute(
            select(outbox).where(outbox.c.id.in_(ids)).order_by(outbox.c.available_at, outbox.c.id)
        )
        return undamaged(
            rows,
            lambda row: StoredMessage(row.id, row.type, row.key, payload_of(row.payload), row.created_at, row.attempts),
            "message",
            lambda number: self.done(owner, [number]),
        )

    def done(self, owner: str, ids: Collection[int]) -> int:
        """Mark messages that `owner` still holds as done; returns how many."""
        return self._connection.execute(
            update(outbox)
            .where(and_(outbox.c.id.in_(list(ids)), outbox.c.leased_by == owner, outbox.c.done_at.is_(None)))
            .values(done_at=self._clock.now(), leased_by=None, leased_until=None)
        ).rowcount
