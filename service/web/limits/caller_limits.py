"""Limits for each caller: requests and actions in a period, and what runs at one time.

They count in this process, except those of `service.people.login_limits`.
"""

import itertools
import math
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.errors import TooManyRequests
from service.people.login_limits import SharedLimit

RETRY_AFTER_S = 10


class ConcurrencyLimit:
    """Counts what runs at one time in this process.

    Args:
        what: its name in the plural, as in "exports".
        total: how many run at one time.
        per_caller: how many of one caller, who then does not keep all others waiting.
    """

    def __init__(self, what: str, total: int, per_caller: int) -> None:
        self._what = what
        self._total = total
        self._per_caller = per_caller
        self._running: Counter[str] = Counter()
        self._lock = threading.Lock()

    def begin(self, sender: str) -> None:
        """Count one of a caller until `end`.

        Raises:
            TooManyRequests: as many run already.
        """
        with self._lock:
            if self._running[sender] >= self._per_caller:
                detail = f"{self._per_caller} {self._what} of yours are still running"
            elif self._running.total() >= self._total:
                detail = f"{self._total} {self._what} are running already"
            else:
                self._running[sender] += 1
                return
        raise TooManyRequests(f"{detail}: try again when one has ended", RETRY_AFTER_S)

    def end(self, sender: str) -> None:
        """One of a caller has ended, or its client is gone."""
        with self._lock:
            self._running[sender] -= 1
            self._running += Counter()  # forgets callers of whom nothing runs

    @contextmanager
    def one_of(self, sender: str) -> Iterator[None]:
        """Count one of a caller during the `with` block.

        Raises:
            TooManyRequests: as many run already.
        """
        self.begin(sender)
        try:
            yield
        finally:
            self.end(sender)


class CountedAnswer(Response):
    """An answer that counts in a `ConcurrencyLimit` until it ends; stands before another class of answers as a base."""

    _ended: Callable[[], object]

    def counts_until_its_end(self, ended: Callable[[], None]) -> None:
        """Call `ended` once: when the answer is sent, its client is gone, or it is not sent at all."""
        self._ended = weakref.finalize(self, ended)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


def export_limit() -> ConcurrencyLimit:
    """Exports; measured, see docs/security.md, "Memory": the peak stays below 1.5 times that of an idle server."""
    return ConcurrencyLimit("exports", 3, 2)


def live_limit() -> ConcurrencyLimit:
    """Pages that receive live updates: each asks the database every two seconds (judgement)."""
    return ConcurrencyLimit("live updates", 200, 20)


def code_limit() -> ConcurrencyLimit:
    """Codes of the identity provider that are checked: one client leaves a turn (service.people.oidc.WAITING)."""
    return ConcurrencyLimit("logins", 40, 3)


def replay_limit() -> ConcurrencyLimit:
    """Replays of a policy, which take a processor for seconds (judgement)."""
    return ConcurrencyLimit("replays of a policy", 2, 1)


def pdf_limit() -> ConcurrencyLimit:
    """Reports that are printed; each takes a processor for 0.2 s, 17 MB and a thread that answers requests."""
    return ConcurrencyLimit("PDF reports", 3, 2)


UNLIMITED = 0
_numbers = itertools.count()


@cache
def _memory() -> MemoryStorage:
    """The counts of all limits of this process: each storage has a thread that forgets what is over."""
    return MemoryStorage()


class RateLimit:
    """Counts in a sliding window, in this process.

    Args:
        times: how often something may happen in the window for each key; 0: any number.
        minutes: the length of the window.
    """

    def __init__(self, times: int = UNLIMITED, minutes: int = 1) -> None:
        self._item = RateLimitItemPerMinute(times, minutes) if times else None
        self._limiter = SlidingWindowCounterRateLimiter(_memory())
        self._name = str(next(_numbers))  # no two limits count together

    def exceeded(self, key: str) -> int | None:
        """Count once; the seconds until the next time is accepted if the limit is reached, otherwise None.

        What is refused is not counted, so that a caller who never waits still gets the rate of the limit.
        """
        if self._item is None or self._limiter.hit(self._item, self._name, key):
            return None
        return max(1, math.ceil(self._limiter.get_window_stats(self._item, self._name, key).reset_time - time.time()))

    def check(self, key: str, what: str) -> None:
        """Count once.

        Args:
            key: by whom or what is counted.
            what: what there are too many of, for the message.

        Raises:
            TooManyRequests: the limit is reached.
        """
        wait_s = self.exceeded(key)
        if wait_s is not None:
            raise TooManyRequests(f"too many {what}: try again later", wait_s)


@dataclass(frozen=True, slots=True)
class ActionLimits:
    """What one caller may do again and again (judgement: more than a person does).

    Attributes:
        changes: requests that change something, by somebody who does not operate the service: each adds to the audit
            log.
        exports: files of failures, which add to the audit log too.
        reports: reports that are sent on request, at all processes together.
        deliveries: the same delivery, sent again on request, at all processes together.
        logins: sessions of the same account or token, at all processes together.
        codes: codes of the identity provider from one address, each of which asks the provider; the people of a whole
            office may have one address.
    """

    changes: RateLimit = field(default_factory=lambda: RateLimit(60))
    exports: RateLimit = field(default_factory=lambda: RateLimit(30))
    reports: SharedLimit = field(default_factory=lambda: SharedLimit("reports", 20, timedelta(hours=1)))
    deliveries: SharedLimit = field(default_factory=lambda: SharedLimit("deliveries", 5, timedelta(hours=1)))
    logins: SharedLimit = field(default_factory=lambda: SharedLimit("logins", 30, timedelta(minutes=5)))
    codes: RateLimit = field(default_factory=lambda: RateLimit(600, 5))
