"""The clock of the demo: it shows the time of the story until the month is over, then the system's time."""

import time
from datetime import UTC, datetime


class StoryClock:
    """A clock that is set from event to event. `at` None: the system's time."""

    def __init__(self, at: datetime | None) -> None:
        self.at = at

    def now(self) -> datetime:
        """Return the time of the story, or the system's time after the month."""
        return self.at or datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds of a monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return after about `seconds`."""
        time.sleep(seconds)
