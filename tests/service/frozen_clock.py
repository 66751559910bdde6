"""A clock that stands still until it is advanced."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass
class FrozenClock:
    """The clock for tests: sleeping advances it."""

    at: datetime

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)
