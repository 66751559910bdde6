"""Runs that classify stored failures again on several machines, and the ranges that are done."""

from datetime import datetime

from sqlalchemy import delete, insert, select, update

from service.learning.records import ReclassificationRun, Reclassified
from service.learning.tables import reclassification_runs, reclassified_ranges
from service.sql import bulk
from service.sql.packing import pack, unpack
from service.sql.reader import TimedReader
from service.sql.types import utc

LOCK = 0x6661756C_72756E73


class ReclassificationRunReader(TimedReader):
    """Reads runs."""

    def unfinished(self, name: str) -> ReclassificationRun | None:
        """The run of this name that is not done."""
        row = self._connection.execute(
            select(reclassification_runs)
            .where(reclassification_runs.c.name == name, reclassification_runs.c.done_at.is_(None))
            .order_by(reclassification_runs.c.id)
            .limit(1)
        ).first()
        return None if row is None else ReclassificationRun(row.id, row.since, row.first, row.last)

    def is_done(self, run_id: int, first: int) -> bool:
        """Whether the range that begins with an id is done."""
        found = select(reclassified_ranges.c.first).where(
            reclassified_ranges.c.run_id == run_id, reclassified_ranges.c.first == first
        )
        return self._connection.execute(found).first() is not None

    def done_ranges(self, run_id: int) -> frozenset[int]:
        """The first ids of the ranges that are done."""
        found = select(reclassified_ranges.c.first).where(reclassified_ranges.c.run_id == run_id)
        return frozenset(self._connection.execute(found).scalars())

    def totals(self, run_id: int) -> Reclassified:
        """The counts of all ranges that are done."""
        total = Reclassified()
        for row in self._connection.execute(select(reclassified_ranges).where(reclassified_ranges.c.run_id == run_id)):
            total.add(Reclassified(row.read, row.changed, row.people, row.unreadable))
            for old, new, count in unpack(row.moves)["moves"]:
                total.moves[old, new] += count
        return total


class ReclassificationRunRepository(ReclassificationRunReader):
    """Reads and writes runs."""

    def open(self, name: str, since: datetime, first: int, last: int) -> ReclassificationRun:
        """The unfinished run of this name, else a new one."""
        bulk.lock(self._connection, [LOCK])  # two commands that start together share one run
        found = self.unfinished(name)
        if found is not None:
            return found
        number = self._connection.execute(
            insert(reclassification_runs)
            .values(name=name, started_at=utc(self._clock.now()), since=utc(since), first=first, last=last)
            .returning(reclassification_runs.c.id)
        ).scalar_one()
        return ReclassificationRun(number, since, first, last)

    def mark(self, run_id: int, first: int, done: Reclassified) -> bool:
        """Record a range as done; False if it is done already, or another transaction records it first."""
        values = {
            "run_id": run_id,
            "first": first,
            "read": done.read,
            "changed": done.changed,
            "people": done.people,
            "unreadable": done.unreadable,
            "moves": pack({"moves": [[old, new, count] for (old, new), count in sorted(done.moves.items())]}),
        }
        return bulk.insert_new(self._connection, reclassified_ranges, values)

    def finish(self, run_id: int) -> None:
        """Record that a run is done; its ranges are not needed any more."""
        self._connection.execute(
            update(reclassification_runs)
            .where(reclassification_runs.c.id == run_id)
            .values(done_at=utc(self._clock.now()))
        )
        self._connection.execute(delete(reclassified_ranges).where(reclassified_ranges.c.run_id == run_id))
