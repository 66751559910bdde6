"""Replays stored decisions under another policy: several processes read them, one decides them in time order.

Limits depend on the decisions before, so that the decisions themselves cannot be divided.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from datetime import datetime
from functools import partial
from multiprocessing import get_context

from service.automation import decision_records
from service.db.session import Store
from service.recommend.policy import Policy
from service.recommend.replay import PastDecision, Replay, ReplayComparison

PART = 10_000  # failures that a process reads at a time
_AHEAD = 2  # parts read ahead by each process


def _parts(low: int, high: int) -> Iterator[tuple[int, int]]:
    for begin in range(low, high + 1, PART):
        yield begin, min(high, begin + PART - 1)


def _read(database_url: str, since: datetime, bounds: tuple[int, int]) -> list[PastDecision]:
    store = Store(database_url)
    try:
        with store.reading() as reading:
            return list(decision_records.past_decisions(reading.decision_history.read(*bounds, since)))
    finally:
        store.close()


def replay(database_url: str, other: Policy, since: datetime, workers: int = 1) -> ReplayComparison:
    """Compare the decisions since a time with those of another policy.

    Raises:
        Unavailable: the database does not answer.
    """
    store = Store(database_url)
    try:
        with store.reading() as reading:
            span = reading.decision_history.span(since)
    finally:
        store.close()
    if span is None:
        return ReplayComparison(other.version)
    replayed = Replay(other)
    read, parts = partial(_read, database_url, since), list(_parts(*span))
    if workers <= 1 or len(parts) == 1:
        for bounds in parts:
            replayed.add(read(bounds))
        return replayed.found
    # Spawned, because database connections do not survive a fork.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for decisions in _in_order(pool, read, parts, workers * _AHEAD):
            replayed.add(decisions)
    return replayed.found


def _in_order(
    pool: ProcessPoolExecutor, read: "partial[list[PastDecision]]", parts: Sequence[tuple[int, int]], ahead: int
) -> Iterator[list[PastDecision]]:
    """The parts in order; only a few are read ahead, so that they do not fill the memory."""
    waiting: deque[Future[list[PastDecision]]] = deque()
    for bounds in parts:
        waiting.append(pool.submit(read, bounds))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
