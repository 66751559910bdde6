"""The partitions of `log_bodies` on PostgreSQL: one for each month (UTC) in which attempts ended, and one for the rest.

A row whose month has no partition goes into `log_bodies_default`, so that an insert never fails. No lock is waited for
longer than `LOCK_TIMEOUT`, since all statements that come after a waiting one wait too. On SQLite, and where the
database's user does not own the table, nothing is done here: retention then deletes rows instead of months.
"""

import logging
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from sqlalchemy import Connection, text

from service.sql import bulk

log = logging.getLogger(__name__)

TABLE, DEFAULT = "log_bodies", "log_bodies_default"
AHEAD = 3  # months after the present one
LOCK_TIMEOUT = "2s"
# More rows of one month in the default partition stay there: moving them would hold its lock too long (judgement).
MOVED_MOST = 20_000
_NAME = re.compile(r"log_bodies_(\d{4})_(\d{2})")

Transaction = Callable[[], AbstractContextManager[Connection]]


@dataclass(frozen=True, order=True, slots=True)
class Month:
    """A month in UTC."""

    year: int
    month: int

    @classmethod
    def of(cls, at: datetime) -> Self:
        """The month of an instant."""
        there = at.astimezone(UTC)
        return cls(there.year, there.month)

    def plus(self, months: int) -> "Month":
        """The month this many months later."""
        number = self.year * 12 + self.month - 1 + months
        return Month(number // 12, number % 12 + 1)

    def begin(self) -> datetime:
        """The first instant of the month."""
        return datetime(self.year, self.month, 1, tzinfo=UTC)

    @property
    def partition(self) -> str:
        """The name of its partition."""
        return f"{TABLE}_{self.year:04d}_{self.month:02d}"


def months(connection: Connection) -> list[Month]:
    """The months that have a partition, the oldest first; none where partitions cannot be changed."""
    if not bulk.is_postgres(connection):
        return []
    children = connection.execute(
        text(
            "SELECT child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid "
            "JOIN pg_class parent ON parent.oid = inhparent "
            "WHERE inhparent = to_regclass(:table) AND pg_has_role(parent.relowner, 'USAGE')"
        ),
        {"table": TABLE},
    )
    matches = (_NAME.fullmatch(name) for name in children.scalars())
    return sorted(Month(int(match[1]), int(match[2])) for match in matches if match)


def create(transaction: Transaction, now: datetime) -> list[Month]:
    """Create the partitions of the present month and of the next ones, as far as they are missing.

    Returns:
        The months whose partitions were created.

    Raises:
        Unavailable: the database does not answer, or a lock was not free in time; the next call does the rest.
    """
    this = Month.of(now)
    with transaction() as connection:
        have = months(connection)
        if not _changeable(connection):
            return []
    missing = [this.plus(number) for number in range(AHEAD + 1) if this.plus(number) not in have]
    made = []
    for month in missing:
        with transaction() as connection:
            if create_month(connection, month):
                made.append(month)
    return made


def drop_before(transaction: Transaction, before: datetime) -> int:
    """Drop the partitions of the months that were over before a time.

    Returns:
        The number of logs in them.

    Raises:
        Unavailable: the database does not answer, or a lock was not free in time; the next call does the rest.
    """
    removed = 0
    with transaction() as connection:
        expired = [month for month in months(connection) if month.plus(1).begin() <= before]
    for month in expired:
        with transaction() as connection:
            # Its files go here, where only its own lock is needed: nobody reads or writes a month that has expired.
            _limit_waiting(connection)
            connection.exec_driver_sql(f"LOCK TABLE {month.partition} IN ACCESS EXCLUSIVE MODE")
            count = f"SELECT count(*) FROM {month.partition}"  # noqa: S608 - a name of our own
            removed += int(connection.exec_driver_sql(count).scalar_one())
            connection.exec_driver_sql(f"TRUNCATE {month.partition}")
        with transaction() as connection:
            _limit_waiting(connection)
            connection.exec_driver_sql(f"DROP TABLE {month.partition}")
        log.info("the logs of %04d-%02d were removed as a whole", month.year, month.month)
    return removed


def _changeable(connection: Connection) -> bool:
    """Whether there are partitions, and the database's user may change them."""
    if not bulk.is_postgres(connection):
        return False
    owned = connection.execute(
        text("SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass(:table)"), {"table": TABLE}
    ).scalar_one_or_none()
    if not owned:
        log.warning("the database's user does not own %s: its logs are not divided into months", TABLE)
    return bool(owned)


def create_month(connection: Connection, month: Month) -> bool:
    """Create a partition on PostgreSQL, with the rows of its month that are in the default partition so far.

    Returns:
        Whether there is one now; not if these rows are too many.
    """
    name, since, until = month.partition, month.begin().isoformat(), month.plus(1).begin().isoformat()
    here = f"FROM {DEFAULT} WHERE ended_at >= '{since}' AND ended_at < '{until}'"
    _limit_waiting(connection)
    # Against writers only: one that had chosen the default partition already would fail there afterwards.
    connection.exec_driver_sql(f"LOCK TABLE ONLY {TABLE} IN SHARE ROW EXCLUSIVE MODE")
    count = f"SELECT count(*) FROM (SELECT 1 {here} LIMIT {MOVED_MOST + 1}) AS moving"  # noqa: S608 - names and times of our own
    if connection.exec_driver_sql(count).scalar_one() > MOVED_MOST:
        log.warning("the logs of %04d-%02d stay in %s: they are too many to move", month.year, month.month, DEFAULT)
        return False
    connection.exec_driver_sql(f"CREATE TABLE {name} (LIKE {TABLE} INCLUDING ALL)")
    connection.exec_driver_sql(
        f"WITH moved AS (DELETE {here} RETURNING *) INSERT INTO {name} SELECT * FROM moved"  # noqa: S608 - as above
    )
    connection.exec_driver_sql(
        f"ALTER TABLE {TABLE} ATTACH PARTITION {name} FOR VALUES FROM ('{since}') TO ('{until}')"
    )
    return True


def _limit_waiting(connection: Connection) -> None:
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
