"""Times relative to the end of a job."""

from datetime import datetime

from service.formatting import duration


def relative_time(at: str | None, end: datetime) -> str:
    """A text such as `40 s before the end`; empty if no time is known."""
    if at is None:
        return ""
    seconds = (datetime.fromisoformat(at) - end).total_seconds()
    if abs(seconds) < 1:
        return "at the end"
    return f"{duration(abs(seconds))} {'before' if seconds < 0 else 'after'} the end"
