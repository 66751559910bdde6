"""Clamps times: a wrong clock (year 1 or 9999) must not stop the counting."""

from datetime import UTC, datetime

EARLIEST = datetime(1971, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def bounded(at: datetime) -> datetime:
    """The time, or the nearest one within the supported range."""
    return min(max(at, EARLIEST), LATEST)
