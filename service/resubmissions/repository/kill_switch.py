"""The kill switch: one row that every lease reads in its own transaction."""

from sqlalchemy import select, update

from service.resubmissions.records import Switch
from service.resubmissions.tables import kill_switches
from service.sql import bulk
from service.sql.bulk import upsert
from service.sql.reader import TimedReader
from service.sql.types import short

NAME = "automation"
_POSITION = select(kill_switches).where(kill_switches.c.name == NAME)
_LOCK = 0x737769746368  # "switch": a shared lock for leases, an exclusive one for changing the switch


class KillSwitchReader(TimedReader):
    """Reads the kill switch."""

    def get(self) -> Switch:
        """The current position."""
        row = self._connection.execute(_POSITION).first()
        return Switch() if row is None else Switch(row.stopped, row.at, row.by, row.reason)


class KillSwitchRepository(KillSwitchReader):
    """Reads and writes the kill switch."""

    def get_locked(self) -> Switch:
        """The current position, locked until this transaction ends."""
        bulk.lock(self._connection, [_LOCK], shared=True)
        return self.get()

    def turn(self, *, stopped: bool, actor: str, reason: str | None = None) -> Switch:
        """Change the position. After the commit no lease is granted that the new position forbids.

        A second stop without a reason leaves who stopped first, when and why.
        """
        bulk.lock(self._connection, [_LOCK])
        if stopped and reason is None and (position := self.get()).stopped:
            return position
        values = {
            "stopped": stopped,
            "at": self._clock.now(),
            "by": short(actor),
            "reason": short(reason, 500),
        }
        made = (
            upsert(self._connection, kill_switches)
            .values(name=NAME, **values)
            .on_conflict_do_nothing(index_elements=["name"])
        )
        if self._connection.execute(made).rowcount != 1:
            self._connection.execute(update(kill_switches).where(kill_switches.c.name == NAME).values(**values))
        return self.get()
