"""A circuit breaker: after several failures in a row nothing is sent for a while, then one attempt at a time."""

from typing import Final

from service.backoff import pause_after
from service.clock import Clock

FAILURES: Final = 3
FIRST_PAUSE_S: Final = 60.0
LONGEST_PAUSE_S: Final = 3600.0


class CircuitBreaker:
    """Opens after three failures in a row; each further failure doubles the pause, up to an hour."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._closed_again_at = 0.0

    def allows(self) -> bool:
        """Whether a request may be sent now."""
        return self._failures < FAILURES or self._clock.monotonic() >= self._closed_again_at

    def succeeded(self) -> None:
        """Record an answer: the circuit is closed."""
        self._failures = 0

    def failed(self) -> None:
        """Record a request without an answer."""
        self._failures += 1
        pause = pause_after(self._failures - FAILURES + 1, FIRST_PAUSE_S, LONGEST_PAUSE_S)
        self._closed_again_at = self._clock.monotonic() + pause
