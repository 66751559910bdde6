"""The clock, passed in wherever time is needed."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The interface of a clock."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return the seconds of a monotonic clock."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after about `seconds`."""
        ...


class SystemClock:
    """The system clock."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds of a monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return after about `seconds`."""
        time.sleep(seconds)
