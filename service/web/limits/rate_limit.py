"""The rate limit of the intake: requests in a minute, counted for each token or account by `limits` in this process."""

import math
import time

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

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
