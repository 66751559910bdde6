"""Attempts to log in, the places from which people did, and other limited actions: what the limits count."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from math import ceil
from typing import Final

from sqlalchemy import delete, func, insert, select

from service.people.tables import login_attempts
from service.sql import bulk
from service.sql.reader import TimedReader
from service.sql.types import utc

LOCK: Final = 0x6661756C_6C6F6769  # one attempt is counted at a time, so that no two pass the limit together
KNOWN_FOR = timedelta(days=90)  # since the last login
_PLACES = 100  # of one name; an account that logs in from everywhere removes nobody else's
_ids = login_attempts.c.id


class LoginAttemptReader(TimedReader):
    """Counts attempts. Keys have 64 characters."""

    def counts(self, keys: Sequence[str]) -> Mapping[str, int]:
        """The number of attempts that count now, by key; 0 for others."""
        counted = (
            select(login_attempts.c.key, func.count().label("number"))
            .where(login_attempts.c.key.in_(keys), login_attempts.c.until > utc(self._clock.now()))
            .group_by(login_attempts.c.key)
        )
        return Counter({row.key: row.number for row in self._connection.execute(counted)})

    def wait_s(self, key: str) -> int:
        """Seconds until one attempt fewer counts for a key; 1 if none counts."""
        now = utc(self._clock.now())
        counting = (login_attempts.c.key == key, login_attempts.c.until > now)
        ends = self._connection.execute(select(func.min(login_attempts.c.until)).where(*counting)).scalar_one()
        return 1 if ends is None else max(1, ceil((ends - now).total_seconds()))

    def is_known(self, name: str, place: str) -> bool:
        """Whether somebody of this name logged in from this place in the last 90 days."""
        found = select(_ids).where(
            login_attempts.c.key == name,
            login_attempts.c.place == place,
            login_attempts.c.until > utc(self._clock.now()),
        )
        return self._connection.execute(found.limit(1)).first() is not None


class LoginAttemptRepository(LoginAttemptReader):
    """Counts and stores attempts."""

    def lock(self) -> None:
        """Let no other process count until the transaction ends."""
        bulk.lock(self._connection, [LOCK])

    def add(self, keys: Sequence[str], lasts: timedelta, place: str | None = None) -> list[int]:
        """Count one attempt for each key; returns the rows. Removes those that count no more."""
        now = utc(self._clock.now())
        self._connection.execute(delete(login_attempts).where(login_attempts.c.until <= now))
        until = now + lasts
        return [
            self._connection.execute(
                insert(login_attempts).values(key=key, place=place, until=until).returning(_ids)
            ).scalar_one()
            for key in keys
        ]

    def remove(self, rows: Sequence[int]) -> None:
        """Forget attempts."""
        self._connection.execute(delete(login_attempts).where(_ids.in_(rows)))

    def remember(self, name: str, place: str) -> None:
        """Somebody of this name logged in from this place; the latest 100 places of a name are kept."""
        own = login_attempts.c.key == name
        self._connection.execute(delete(login_attempts).where(own, login_attempts.c.place == place))
        over = select(_ids).where(own).order_by(login_attempts.c.until.desc(), _ids.desc()).offset(_PLACES - 1)
        self._connection.execute(delete(login_attempts).where(_ids.in_(over.limit(_PLACES).scalar_subquery())))
        self.add([name], KNOWN_FOR, place)
