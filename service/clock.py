"""Time, passed in wherever it is needed."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the service asks of time."""

    def now(self) -> datetime:
        """The present instant, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after about `seconds`."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The present instant, aware, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return after about `seconds`."""
        time.sleep(seconds)
