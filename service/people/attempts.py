"""How often a login may go wrong: by `limits`, per address and per name, counted in this process."""

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
        """Whether another try is taken."""
        return all(self._limiter.test(limit, *keys) for limit, keys in _keys(address, name))

    def failed(self, address: str, name: str) -> None:
        """Count a try that went wrong."""
        for limit, keys in _keys(address, name):
            self._limiter.hit(limit, *keys)


def _keys(address: str, name: str) -> tuple[tuple[RateLimitItem, tuple[str, str]], ...]:
    by_address = (BY_ADDRESS, ("address", address))
    # Without a name it is a token: one who guesses must not shut out everybody who has one.
    return (by_address, (BY_NAME, ("name", name.casefold()[:200]))) if name else (by_address,)
