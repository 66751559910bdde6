"""When something was, told from a job's end: what came before it may have caused it."""

from datetime import datetime

from service.formatting import duration


def relative_time(at: str | None, end: datetime) -> str:
    """`40 s before the end`; empty where no time is known."""
    if at is None:
        return ""
    seconds = (datetime.fromisoformat(at) - end).total_seconds()
    if abs(seconds) < 1:
        return "at the end"
    return f"{duration(abs(seconds))} {'before' if seconds < 0 else 'after'} the end"
