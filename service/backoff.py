"""Exponential back-off: lengths of pauses, and pauses with random jitter for processes that retry."""

import random

_MOST_DOUBLINGS = 30  # 2**30 s are 34 years; further ones could overflow


def pause_after(failures: int, first: float, longest: float) -> float:
    """The pause in seconds after so many failures in a row: `first` after one, then doubled up to `longest`."""
    return min(first * 2.0 ** min(max(failures - 1, 0), _MOST_DOUBLINGS), longest)


class Backoff:
    """Pauses in seconds: between half and all of a length that doubles from `first` up to `longest`.

    The jitter is there so that many processes do not retry at the same moment.
    """

    def __init__(self, first: float = 0.5, longest: float = 15.0, chance: random.Random | None = None) -> None:
        self._first = first
        self._longest = longest
        self._chance = chance or random.Random()  # noqa: S311 - spreads load, not used for security
        self._failures = 0

    def next(self) -> float:
        """Return the next pause in seconds."""
        self._failures += 1
        return pause_after(self._failures, self._first, self._longest) * self._chance.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Start with short pauses again, after a success."""
        self._failures = 0
