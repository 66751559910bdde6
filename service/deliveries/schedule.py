"""The time of the next attempt of a failed delivery: the schedule of Standard Webhooks, with jitter."""

from collections.abc import Sequence

LONGEST_RETRY_AFTER_S = 86_400.0


def pause_s(
    schedule_s: Sequence[float], tries: int, *, jitter: float, chance: float, retry_after_s: float | None = None
) -> float | None:
    """Seconds until the next attempt after `tries` failed ones; None: there is none.

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
