"""Sessions: who is logged in, the list of an account, and how they begin and end."""

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, func, insert, select, update

from classifiers.redaction import redact
from service.errors import NotFound
from service.people.records import Client, SessionRow
from service.people.repository.accounts import Account, account_of_row
from service.people.repository.tokens import hashed
from service.people.tables import accounts, sessions
from service.sql.reader import TimedReader
from service.sql.types import UtcDateTime, clean, utc

last_used = func.coalesce(sessions.c.used_at, sessions.c.created_at, type_=UtcDateTime)
UNKNOWN_CLIENT = Client()
_ADDRESS, _AGENT = 100, 300  # characters
_MOST = 100  # sessions of one account or token; beyond it its oldest are removed, and nobody else's
_ID = 16  # characters of the hash that identify a session; they say nothing about the cookie's value


class SessionReader(TimedReader):
    """Reads sessions."""

    def of_account(self, account_id: int, current: str = "", *, idle: timedelta) -> tuple[SessionRow, ...]:
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

    def numbers(self, *, idle: timedelta) -> Mapping[int, int]:
        """The number of sessions by account id; accounts without one are left out."""
        counted = (
            select(sessions.c.account_id, func.count().label("number"))
            .where(sessions.c.account_id.is_not(None), *self._valid(idle))
            .group_by(sessions.c.account_id)
        )
        return {row.account_id: row.number for row in self._connection.execute(counted)}

    def owner(self, secret: str, *, idle: timedelta) -> Account | int | None:
        """The account or the API token id of a session; None if the session is not valid.

        A session that was not used for `idle` is not valid.
        """
        row = self._connection.execute(
            select(sessions.c.account_id, sessions.c.token_id).where(
                sessions.c.sha256 == hashed(secret),
                *self._valid(idle),
            )
        ).first()
        if row is None:
            return None
        if row.account_id is not None:
            found = self._connection.execute(
                select(accounts).where(accounts.c.id == row.account_id, accounts.c.disabled_at.is_(None))
            ).first()
            return None if found is None else account_of_row(found)
        token_id: int = row.token_id
        return token_id

    def last_used_at(self, secret: str) -> datetime | None:
        """The last recorded use of a session; None if there is none."""
        found = select(last_used).where(sessions.c.sha256 == hashed(secret))
        at: datetime | None = self._connection.execute(found).scalar_one_or_none()
        return at

    def _valid(self, idle: timedelta) -> tuple[ColumnElement[bool], ...]:
        now = self._clock.now()
        return sessions.c.revoked_at.is_(None), sessions.c.until > utc(now), last_used > utc(now - idle)


class SessionRepository(SessionReader):
    """Reads, begins and ends sessions."""

    def log_in(
        self,
        *,
        account_id: int | None = None,
        token_id: int | None = None,
        lasts: timedelta,
        client: Client = UNKNOWN_CLIENT,
    ) -> str:
        """Create a session; returns its secret for the cookie. Removes expired and surplus sessions.

        Long texts of the client are cut.
        """
        secret, now = secrets.token_urlsafe(32), utc(self._clock.now())
        self._connection.execute(delete(sessions).where(sessions.c.until <= now))
        own = sessions.c.account_id == account_id if account_id is not None else sessions.c.token_id == token_id
        over = (
            select(sessions.c.sha256).where(own).order_by(sessions.c.created_at.desc()).offset(_MOST - 1).limit(1_000)
        )
        self._connection.execute(delete(sessions).where(sessions.c.sha256.in_(over.scalar_subquery())))
        self._connection.execute(
            insert(sessions).values(
                sha256=hashed(secret),
                account_id=account_id,
                token_id=token_id,
                created_at=now,
                until=now + lasts,
                address=clean(client.address)[:_ADDRESS],
                agent=clean(redact(client.agent[: 2 * _AGENT]))[:_AGENT],
            )
        )
        if account_id is not None:
            self._connection.execute(update(accounts).where(accounts.c.id == account_id).values(last_login_at=now))
        return secret

    def use(self, secret: str) -> None:
        """Record that a session is used now."""
        used = update(sessions).where(sessions.c.sha256 == hashed(secret)).values(used_at=utc(self._clock.now()))
        self._connection.execute(used)

    def log_out(self, secret: str) -> None:
        """End one session."""
        self._connection.execute(delete(sessions).where(sessions.c.sha256 == hashed(secret)))

    def end(self, account_id: int, session_id: str) -> None:
        """End one session of an account.

        Raises:
            NotFound: the account has no such session.
        """
        one = sessions.c.sha256.startswith(session_id, autoescape=True)
        if len(session_id) != _ID or not self._end(account_id, one):
            raise NotFound("no such session of this account: it may have ended already")

    def end_all(self, account_id: int) -> int:
        """End all sessions of an account; returns their number."""
        return self._end(account_id)

    def end_all_of_token(self, token_id: int) -> int:
        """End all sessions that began with an API token; returns their number."""
        return self._connection.execute(delete(sessions).where(sessions.c.token_id == token_id)).rowcount

    def end_others(self, account_id: int, keep: str) -> int:
        """End all sessions of an account but the one with the secret `keep`; returns their number."""
        return self._end(account_id, sessions.c.sha256 != hashed(keep))

    def _end(self, account_id: int, *which: Any) -> int:
        ended = delete(sessions).where(sessions.c.account_id == account_id, *which)
        return self._connection.execute(ended).rowcount
