"""Pauses before a retry: exponential back-off with random jitter, a given schedule, and Retry-After."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_RETRY_AFTER_S = 86_400.0
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


def scheduled_pause(
    schedule_s: Sequence[float], tries: int, *, jitter: float, chance: float, retry_after_s: float | None = None
) -> float | None:
    """Seconds until the next attempt after `tries` failed ones, by a schedule; None: there is none.

    Args:
        schedule_s: seconds before each attempt, 0 for the first.
        tries: at least 1.
        jitter: the pause grows by up to this share.
        chance: 0..1, the fraction of the jitter.
        retry_after_s: requested by the receiver; it lengthens a pause, up to a day, and never shortens one.
    """
    if tries >= len(schedule_s):
        return None
    pause = schedule_s[tries] * (1 + jitter * chance)
    return pause if retry_after_s is None else max(pause, min(retry_after_s, LONGEST_RETRY_AFTER_S))


def retry_after_s(value: str | None, now: datetime | None) -> float | None:
    """Seconds from a Retry-After header (RFC 9110, 10.2.3: seconds or a date); None if it is not valid.

    Args:
        value: the header; None: there is none.
        now: what a date is compared with; None: not known, so that a date says nothing.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    at = http_date(text)
    return None if at is None or now is None else max(0.0, (at - now).total_seconds())


def http_date(text: str) -> datetime | None:
    """An aware date of HTTP; None if it is not valid."""
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at
