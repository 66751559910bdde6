"""Instants that can be reckoned with: a clock that says the year 1 or 9999 must not stop what counts."""

from datetime import UTC, datetime

EARLIEST = datetime(1971, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def bounded(at: datetime) -> datetime:
    """The instant, or the nearest one that can be reckoned with."""
    return min(max(at, EARLIEST), LATEST)
