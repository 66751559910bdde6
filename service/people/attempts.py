"""Rate limits of failed logins, per address and per name, counted in this process by `limits`."""

from limits import RateLimitItem, RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

BY_ADDRESS = RateLimitItemPerMinute(20, 5)
BY_NAME = RateLimitItemPerMinute(10, 5)
RETRY_AFTER_S = 300


class LoginAttempts:
    """Failed logins of the last five minutes."""

    def __init__(self) -> None:
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def allowed(self, address: str, name: str) -> bool:
        """Whether another attempt is allowed."""
        return all(self._limiter.test(limit, *keys) for limit, keys in _keys(address, name))

    def failed(self, address: str, name: str) -> None:
        """Count a failed attempt."""
        for limit, keys in _keys(address, name):
            self._limiter.hit(limit, *keys)


def _keys(address: str, name: str) -> tuple[tuple[RateLimitItem, tuple[str, str]], ...]:
    by_address = (BY_ADDRESS, ("address", address))
    # A token login has no name: guessing tokens must not lock out other token users.
    return (by_address, (BY_NAME, ("name", name.casefold()[:200]))) if name else (by_address,)
