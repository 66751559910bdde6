"""Pauses between tries: longer each time, never quite the same, so that many workers do not come at once."""

import random


class Backoff:
    """The next pause in seconds, between half and the whole of a length that doubles from `first` up to `longest`."""

    def __init__(self, first: float = 0.5, longest: float = 15.0, chance: random.Random | None = None) -> None:
        self._first = first
        self._longest = longest
        self._chance = chance or random.Random()  # noqa: S311 - spreads load, guards nothing
        self._length = first

    def next(self) -> float:
        """How long to wait now."""
        pause = self._length * self._chance.uniform(0.5, 1.0)
        self._length = min(self._length * 2, self._longest)
        return pause

    def reset(self) -> None:
        """It went well: begin with short pauses again."""
        self._length = self._first
