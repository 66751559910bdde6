"""Recurring duties that exactly one process does, however many run: a lease a duty, and up to what it is done."""

from datetime import timedelta

from sqlalchemy import Connection, or_, select, update

from service.clock import Clock
from service.db.task_leases_table import task_leases
from service.sql import bulk
from service.sql.types import utc


class TaskLeaseReader:
    """Reads leases of periodic tasks."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def last(self, name: str) -> str | None:
        """The last turn that was done."""
        return self._connection.execute(
            select(task_leases.c.done).where(task_leases.c.name == name)
        ).scalar_one_or_none()


class TaskLeaseRepository(TaskLeaseReader):
    """Reads and writes leases of periodic tasks."""

    def take(self, name: str, holder: str, *, due: str, lease: timedelta) -> bool:
        """Whether `holder` is to do the duty's turn `due` (a name that sorts, such as a week) now.

        False where this turn is done, or another holds it; its lease ends by itself if it dies.
        """
        now = utc(self._clock.now())
        bulk.insert_new(self._connection, task_leases, {"name": name})
        taken = self._connection.execute(
            update(task_leases)
            .where(
                task_leases.c.name == name,
                or_(task_leases.c.done.is_(None), task_leases.c.done < due),
                or_(task_leases.c.until.is_(None), task_leases.c.until <= now, task_leases.c.holder == holder),
            )
            .values(holder=holder, until=now + lease)
        )
        return taken.rowcount == 1

    def done(self, name: str, holder: str, *, due: str) -> bool:
        """Mark a turn as done; False where the lease was lost meanwhile."""
        marked = self._connection.execute(
            update(task_leases)
            .where(task_leases.c.name == name, task_leases.c.holder == holder)
            .values(done=due, holder=None, until=None)
        )
        return marked.rowcount == 1
