"""Leases of periodic tasks, each of which exactly one process performs, and their last completed turn; their table."""

from datetime import timedelta

from sqlalchemy import Column, String, Table, or_, select, update

from service.sql import bulk
from service.sql.reader import TimedReader
from service.sql.types import UtcDateTime, metadata, utc

CLOCKS_DIFFER = timedelta(minutes=5)  # between the machines of a service, at most

# One row a task: who holds it until when, and the last turn that is done.
task_leases = Table(
    "duties",
    metadata,
    Column("name", String(60), primary_key=True),
    Column("holder", String(200)),
    Column("until", UtcDateTime),
    Column("done", String(60)),
)


class TaskLeaseReader(TimedReader):
    """Reads leases of periodic tasks."""

    def last(self, name: str) -> str | None:
        """The last completed turn."""
        return self._connection.execute(
            select(task_leases.c.done).where(task_leases.c.name == name)
        ).scalar_one_or_none()


class TaskLeaseRepository(TaskLeaseReader):
    """Reads and writes leases of periodic tasks."""

    def take(self, name: str, holder: str, *, due: str, lease: timedelta) -> bool:
        """Lease the turn `due` (a name, such as a week) of a task to `holder`.

        False if this turn is the last completed one, or leased to another holder; the lease of a dead holder expires.
        A later turn, and a lease that ends later than this one would, are of a clock that was ahead: they do not count.
        """
        now = utc(self._clock.now())
        bulk.insert_new(self._connection, task_leases, {"name": name})
        taken = self._connection.execute(
            update(task_leases)
            .where(
                task_leases.c.name == name,
                or_(task_leases.c.done.is_(None), task_leases.c.done != due),
                or_(
                    task_leases.c.until.is_(None),
                    task_leases.c.until <= now,
                    task_leases.c.until > now + lease + CLOCKS_DIFFER,
                    task_leases.c.holder == holder,
                ),
            )
            .values(holder=holder, until=now + lease)
        )
        return taken.rowcount == 1

    def note(self, name: str, turn: str) -> None:
        """Store the last completed turn of a task that needs no lease."""
        bulk.insert_new(self._connection, task_leases, {"name": name})
        self._connection.execute(update(task_leases).where(task_leases.c.name == name).values(done=turn))

    def release(self, name: str, holder: str) -> None:
        """Give a lease back without having completed a turn; nothing happens if `holder` does not have it."""
        self._connection.execute(
            update(task_leases)
            .where(task_leases.c.name == name, task_leases.c.holder == holder)
            .values(holder=None, until=None)
        )

    def done(self, name: str, holder: str, *, due: str) -> bool:
        """Mark a turn as completed; False if the lease was lost."""
        marked = self._connection.execute(
            update(task_leases)
            .where(task_leases.c.name == name, task_leases.c.holder == holder)
            .values(done=due, holder=None, until=None)
        )
        return marked.rowcount == 1
