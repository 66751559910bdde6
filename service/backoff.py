"""Exponential back-off with random jitter, so that many processes do not retry at the same moment."""

import random


class Backoff:
    """Pauses in seconds: between half and all of a length that doubles from `first` up to `longest`."""

    def __init__(self, first: float = 0.5, longest: float = 15.0, chance: random.Random | None = None) -> None:
        self._first = first
        self._longest = longest
        self._chance = chance or random.Random()  # noqa: S311 - spreads load, not used for security
        self._length = first

    def next(self) -> float:
        """Return the next pause in seconds."""
        pause = self._length * self._chance.uniform(0.5, 1.0)
        self._length = min(self._length * 2, self._longest)
        return pause

    def reset(self) -> None:
        """Start with short pauses again, after a success."""
        self._length = self._first
