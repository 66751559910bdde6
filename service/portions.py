"""Long background work in portions, with pauses in which others may write."""

import time
from collections.abc import Callable


def in_portions(
    step: Callable[[], bool],
    sleep: Callable[[float], object] = time.sleep,
    now: Callable[[], float] = time.perf_counter,
) -> None:
    """Repeat a step until it says that nothing is left, and pause after each as long as it took.

    SQLite has one writer at a time, and those that wait for it look only now and then whether it is their turn: without
    a pause, work of many portions would keep them out until it is done.

    Args:
        step: does one portion in its own transaction; returns whether there may be more.
        sleep: waits for some seconds.
        now: a clock, in seconds.
    """
    while True:
        began = now()
        if not step():
            return
        sleep(now() - began)
