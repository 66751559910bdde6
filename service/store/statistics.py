"""Counts and rates; all of them derive from rows."""

from datetime import datetime

from service.store.records import Health, Stats


class Statistics:
    """The figures of pages and reports."""

    def stats(
        self,
        since: datetime,
        until: datetime,
        *,
        cluster: str | None = None,
        queue: str | None = None,
        team: str | None = None,
    ) -> Stats:
        """Counts over jobs that ended in [since, until); the hourly series covers the last 24 hours of it at most."""
        raise NotImplementedError

    def health(self, since: datetime) -> Health:
        """How far the pipeline can be trusted, counted from `since`."""
        raise NotImplementedError
