"""Sessions of an account as the person and administrators see them: a list, and how to end them."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, select

from service.clock import Clock
from service.errors import NotFound
from service.people.records import SessionRow
from service.people.repository.tokens import hashed
from service.people.tables import sessions
from service.sql.types import UtcDateTime, utc

last_used = func.coalesce(sessions.c.used_at, sessions.c.created_at, type_=UtcDateTime)
_ID = 16  # characters of the hash that identify a session; they say nothing about the cookie's value


class SessionReader:
    """Reads sessions."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def of_account(
        self, account_id: int, current: str = "", *, idle: timedelta | None = None
    ) -> tuple[SessionRow, ...]:
        """The sessions of an account that have not ended, newest login first; at most 100.

        `current` is the secret of the session that asks; it is marked in the list. A session that was not used for
        `idle` has ended.
        """
        rows = self._connection.execute(
            select(sessions, last_used.label("last_used_at"))
            .where(sessions.c.account_id == account_id, *self._valid(idle))
            .order_by(sessions.c.created_at.desc(), sessions.c.sha256)
        )
        own = hashed(current) if current else ""
        return tuple(
            SessionRow(
                row.sha256[:_ID],
                row.created_at,
                row.last_used_at,
                row.until,
                row.address or "",
                row.agent or "",
                current=row.sha256 == own,
            )
            for row in rows
        )

    def numbers(self, *, idle: timedelta | None = None) -> Mapping[int, int]:
        """The number of sessions by account id; accounts without one are left out."""
        counted = (
            select(sessions.c.account_id, func.count().label("number"))
            .where(sessions.c.account_id.is_not(None), *self._valid(idle))
            .group_by(sessions.c.account_id)
        )
        return {row.account_id: row.number for row in self._connection.execute(counted)}

    def _valid(self, idle: timedelta | None) -> tuple[ColumnElement[bool], ...]:
        now = self._clock.now()
        used = () if idle is None else (last_used > utc(now - idle),)
        return sessions.c.revoked_at.is_(None), sessions.c.until > utc(now), *used


class SessionRepository(SessionReader):
    """Reads and ends sessions."""

    def end(self, account_id: int, session_id: str) -> None:
        """End one session of an account.

        Raises:
            NotFound: the account has no such session.
        """
        one = sessions.c.sha256.startswith(session_id, autoescape=True)
        if len(session_id) != _ID or not self._end(account_id, one):
            raise NotFound("no such session of this account: it may have ended already")

    def end_others(self, account_id: int, keep: str = "") -> int:
        """End all sessions of an account but the one with the secret `keep`; returns their number."""
        return self._end(account_id, sessions.c.sha256 != hashed(keep))

    def _end(self, account_id: int, *which: Any) -> int:
        ended = delete(sessions).where(sessions.c.account_id == account_id, *which)
        return self._connection.execute(ended).rowcount
