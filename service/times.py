"""Times: their limits, and those from outside, read from texts and kept within what the service can compute with."""

from datetime import UTC, datetime

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MIN_TIME, MAX_TIME = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)  # of Python
# Of events: a time outside of these is a wrong clock.
EARLIEST = datetime(1971, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def instant_of(value: object) -> datetime | None:
    """The time of an ISO 8601 text, in UTC; a text without a zone is in UTC, as in events. None: it is no such text."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        return at if at is None else at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def iso_text(at: datetime | None) -> str | None:
    """A time as verdicts write it: ISO 8601 with the offset of its zone; None stays None."""
    return None if at is None else at.isoformat()


def rfc3339(at: datetime) -> str:
    """A time in UTC as events, URLs and APIs write it: with `Z` for its zone."""
    return at.isoformat().replace("+00:00", "Z")


def bounded(at: datetime) -> datetime:
    """The time, or the nearest one within the supported range: a wrong clock (year 1 or 9999) must not stop counts."""
    return min(max(at, EARLIEST), LATEST)
