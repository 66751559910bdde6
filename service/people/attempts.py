"""Limits of logins, counted in this process by `limits`. An attempt counts from its start until it succeeds.

Successful ones have a limit of their own: each takes as much of the processor, and adds to the audit log.

Nobody can lock everybody out: a person who logged in from an address before is only limited by attempts for this name
from this address, so neither guesses from elsewhere nor other people behind the same address keep the person out.
"""

import threading
from collections import Counter
from dataclasses import dataclass
from ipaddress import ip_address

from limits import RateLimitItem, RateLimitItemPerDay, RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

BY_ADDRESS = RateLimitItemPerMinute(20, 5)
BY_NAME_AND_ADDRESS = RateLimitItemPerMinute(10, 5)
BY_NAME = RateLimitItemPerMinute(30, 5)
SUCCESSES = RateLimitItemPerMinute(30, 5)  # of a name from an address
# Wrong one-time codes after the right password, in a day: three of a million codes are right at any time, so that
# guesses of a year would find one with a probability of 2 %.
CODES = RateLimitItemPerDay(20)
RETRY_AFTER_S = 300
MAX_KNOWN = 10_000  # names with an address
IPV6_NETWORK = 64  # bits; a client usually has all addresses of such a network

_Limit = tuple[RateLimitItem, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A started attempt, to be passed to `finish`."""

    limits: tuple[_Limit, ...]
    known_as: tuple[str, str]


class LoginAttempts:
    """Failed logins of the last five minutes, and running ones."""

    def __init__(self) -> None:
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._running: Counter[_Limit] = Counter()
        self._known: dict[tuple[str, str], None] = {}
        self._lock = threading.Lock()

    def start(self, address: str, name: str) -> Attempt | None:
        """Count an attempt; None if a limit is reached. To be called before a password is hashed."""
        network, folded = network_of(address), name.casefold()[:200]
        with self._lock:
            found = self._limits(network, folded)
            if not all(self._limiter.test(item, *key, cost=self._running[item, key] + 1) for item, key in found):
                return None
            self._running.update(found)
            return Attempt(found, (network, folded))

    def finish(self, attempt: Attempt, *, succeeded: bool | None, wrong_code: bool = False) -> None:
        """Count the attempt as failed, or forget it.

        Args:
            attempt: the attempt.
            succeeded: None if the password could not be checked, which says nothing.
            wrong_code: the password was right, and the one-time code was not.
        """
        with self._lock:
            for limit in attempt.limits:
                self._running[limit] -= 1
                if not self._running[limit]:
                    del self._running[limit]
                if wrong_code if limit[0] is CODES else succeeded is (limit[0] is SUCCESSES):
                    self._limiter.hit(limit[0], *limit[1])
            if succeeded and attempt.known_as[1]:
                self._known.pop(attempt.known_as, None)
                self._known[attempt.known_as] = None
                if len(self._known) > MAX_KNOWN:
                    del self._known[next(iter(self._known))]

    def _limits(self, network: str, name: str) -> tuple[_Limit, ...]:
        by_address = (BY_ADDRESS, ("address", network))
        if not name:  # a token login has no name: guessing tokens must not lock out other token users
            return (by_address,)
        by_both = (BY_NAME_AND_ADDRESS, (name, network))
        own = (by_both, (SUCCESSES, ("succeeded", name, network)))
        if (network, name) in self._known:
            return (*own, (CODES, ("codes", name, network)))
        return (by_address, *own, (BY_NAME, ("name", name)), (CODES, ("codes", name)))


def network_of(address: str) -> str:
    """The part of an address that one client has for itself."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:  # noqa: PLR2004 - the version of IP
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(int(found) >> (128 - IPV6_NETWORK))
