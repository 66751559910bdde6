"""Reads all counts of goodput from one snapshot."""

from collections.abc import Sequence
from datetime import datetime

from service.goodput.records import AttemptSum, GoodputCounts, Times
from service.goodput.repository import attempts, runs, times
from service.sql.reader import Reader
from service.statistics.records import Scope


class GoodputReader(Reader):
    """Reads the counts that goodput and reliability figures are computed from."""

    def attempts(self, bounds: Sequence[datetime], scope: Scope) -> tuple[AttemptSum, ...]:
        """Sums of the attempts that ended between the first and the last of `bounds`, by part of the period."""
        return attempts.sums(self._connection, bounds, scope)

    def counts(self, bounds: Sequence[datetime], scope: Scope) -> GoodputCounts:
        """The counts of the attempts that ended between the first and the last of `bounds`.

        Args:
            bounds: the limits of the parts (days or weeks) of the period in order, at least two.
            scope: which jobs count. Incidents have a cluster, but no team or queue.
        """
        start, end = bounds[0], bounds[-1]
        connection = self._connection
        return GoodputCounts(
            tuple(bounds),
            attempts.sums(connection, bounds, scope),
            runs.sums(connection, start, end, scope),
            Times(
                runs.times_to_restart(connection, start, end, scope),
                times.to_verdict(connection, start, end, scope),
                times.of_hangs(connection, start, end, scope),
            ),
            times.to_close(connection, start, end, scope.cluster),
        )
