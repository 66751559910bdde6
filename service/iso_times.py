"""Times in stored texts and in answers of others."""

from datetime import UTC, datetime


def instant_of(value: object) -> datetime | None:
    """The time of an ISO 8601 text, in UTC; a text without a zone is in UTC, as in events. None: it is no such text."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        return at if at is None else at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
