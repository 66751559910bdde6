"""The state of the retry-storm limit: held keys, since when, and their trials."""

from datetime import datetime

from sqlalchemy import delete, select, update

from service.resubmissions.records import HeldStorm
from service.resubmissions.tables import storms
from service.sql.bulk import upsert
from service.sql.reader import TimedReader
from service.sql.types import short


class StormReader(TimedReader):
    """Reads storms."""

    def held(self, cluster: str | None = None) -> dict[str, HeldStorm]:
        """The held keys of one cluster or of all."""
        wanted = select(storms).order_by(storms.c.held_since, storms.c.storm_key)
        if cluster is not None:
            wanted = wanted.where(storms.c.cluster == short(cluster))
        return {
            row.storm_key: HeldStorm(row.storm_key, row.cluster, row.held_since, row.reason, row.trial_at, row.trial_id)
            for row in self._connection.execute(wanted)
        }


class StormRepository(StormReader):
    """Reads and writes storms."""

    def hold(self, key: str, cluster: str, reason: str) -> bool:
        """Hold a key from now on; False if it is held already."""
        made = self._connection.execute(
            upsert(self._connection, storms)
            .values(
                storm_key=short(key, 600),
                cluster=short(cluster),
                held_since=self._clock.now(),
                reason=short(reason, 300),
            )
            .on_conflict_do_nothing()
            .returning(storms.c.storm_key)
        )
        return made.first() is not None

    def set_trial(self, key: str, request: int, at: datetime) -> None:
        """Set the trial of a held key."""
        self._connection.execute(
            update(storms).where(storms.c.storm_key == short(key, 600)).values(trial_id=request, trial_at=at)
        )

    def end_trial(self, key: str, request: int) -> bool:
        """Remove the trial of a held key; False if it has another one by now."""
        ended = self._connection.execute(
            update(storms)
            .where(storms.c.storm_key == short(key, 600), storms.c.trial_id == request)
            .values(trial_id=None, trial_at=None)
        )
        return ended.rowcount > 0

    def restart(self, key: str, reason: str) -> None:
        """The trial failed: the key is held again."""
        self._connection.execute(
            update(storms)
            .where(storms.c.storm_key == short(key, 600))
            .values(held_since=self._clock.now(), reason=short(reason, 300), trial_id=None, trial_at=None)
        )

    def clear(self, key: str) -> None:
        """Stop holding a key."""
        self._connection.execute(delete(storms).where(storms.c.storm_key == short(key, 600)))
