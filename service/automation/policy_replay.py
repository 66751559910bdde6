"""Replays stored decisions under another policy, in several processes that each read a part of them."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from service.automation import decision_records
from service.db.session import Store
from service.recommend import policy
from service.recommend.policy import Policy
from service.recommend.replay import ReplayComparison, compare, merged

PART = 50_000  # failures per part, enough to outweigh starting a process


def _parts(low: int, high: int) -> Iterator[tuple[int, int]]:
    for begin in range(low, high + 1, PART):
        yield begin, min(high, begin + PART - 1)


def _part(database_url: str, file: Path | None, since: datetime, bounds: tuple[int, int]) -> ReplayComparison:
    store = Store(database_url)
    try:
        with store.reading() as reading:
            return compare(
                decision_records.past_decisions(reading.decision_history.read(*bounds, since)), policy.load(file)
            )
    finally:
        store.close()


def replay(database_url: str, other: Policy, file: Path | None, since: datetime, workers: int = 1) -> ReplayComparison:
    """Compare the decisions since a time with those of another policy (each process reads it from `file`).

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
    replay_part = partial(_part, database_url, file, since)
    parts = list(_parts(*span))
    if workers <= 1 or len(parts) == 1:
        return merged(map(replay_part, parts))
    # Spawned, because database connections do not survive a fork.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return merged(pool.map(replay_part, parts))
