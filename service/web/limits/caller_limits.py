"""Limits for each caller in this process: requests and actions in a period, and what runs at one time."""

import math
import threading
import time
from collections import Counter

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from service.errors import TooManyRequests

RETRY_AFTER_S = 10


class ConcurrencyLimit:
    """Counts what runs at one time in this process.

    Args:
        what: its name in the plural, as in "exports".
        together: how many run at one time.
        of_one: how many of one caller, who then does not keep all others waiting.
    """

    def __init__(self, what: str, together: int, of_one: int) -> None:
        self._what = what
        self._together = together
        self._of_one = of_one
        self._running: Counter[str] = Counter()
        self._lock = threading.Lock()

    def begin(self, sender: str) -> None:
        """Count one of a caller until `end`.

        Raises:
            TooManyRequests: as many run already.
        """
        with self._lock:
            if self._running[sender] >= self._of_one:
                detail = f"{self._of_one} {self._what} of yours are still running"
            elif self._running.total() >= self._together:
                detail = f"{self._together} {self._what} are running already"
            else:
                self._running[sender] += 1
                return
        raise TooManyRequests(f"{detail}: try again when one has ended", RETRY_AFTER_S)

    def end(self, sender: str) -> None:
        """One of a caller has ended, or its client is gone."""
        with self._lock:
            self._running[sender] -= 1
            self._running += Counter()  # forgets callers of whom nothing runs


def export_limit() -> ConcurrencyLimit:
    """Exports; measured, see docs/security.md, "Memory": the peak stays below 1.5 times that of an idle server."""
    return ConcurrencyLimit("exports", 3, 2)


def live_limit() -> ConcurrencyLimit:
    """Pages that receive live updates: each asks the database every two seconds (judgement)."""
    return ConcurrencyLimit("live updates", 200, 20)


UNLIMITED = 0


class IntakeLimit:
    """Counts the requests of a sliding minute.

    Args:
        per_minute: requests that each sender may make in a minute; 0: any number.
    """

    def __init__(self, per_minute: int = UNLIMITED) -> None:
        self._item = RateLimitItemPerMinute(per_minute) if per_minute else None
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    def exceeded(self, sender: str) -> int | None:
        """Count a request; the seconds until the next one is accepted if the limit is reached, otherwise None.

        A refused request is not counted, so that a sender who never waits still gets the rate of the limit.
        """
        if self._item is None or self._limiter.hit(self._item, sender):
            return None
        return max(1, math.ceil(self._limiter.get_window_stats(self._item, sender).reset_time - time.time()))
