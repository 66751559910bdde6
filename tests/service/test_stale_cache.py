"""A value that takes long is served from the cache, recomputed in the background, and never too old."""

import threading
import time

from service.stale_cache import FRESH_S, USABLE_S, StaleCache


def test_uncacheable_values_are_computed_each_time() -> None:
    cache, made = StaleCache[int](), iter(range(9))
    found = [cache.get("a", lambda: next(made), 0.0, cacheable=lambda _: False) for _ in range(3)]
    assert found == [0, 1, 2]


def test_a_stale_value_is_served_while_it_is_recomputed() -> None:
    cache, go = StaleCache[str](), threading.Event()
    assert cache.get("a", lambda: "first", 0.0, cacheable=bool) == "first"
    assert cache.get("a", lambda: "never", FRESH_S - 1, cacheable=bool) == "first"

    def slow() -> str:
        go.wait(60)
        return "second"

    assert cache.get("a", slow, FRESH_S + 1, cacheable=bool) == "first"
    assert cache.get("a", lambda: "third", FRESH_S + 1, cacheable=bool) == "first"  # one thread is at it already
    go.set()
    until = time.monotonic() + 60
    while cache.get("a", lambda: "never", FRESH_S + 2, cacheable=bool) != "second":
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_value_that_is_too_old_is_recomputed_first() -> None:
    cache = StaleCache[str]()
    cache.get("a", lambda: "old", 0.0, cacheable=bool)
    assert cache.get("a", lambda: "new", USABLE_S + 1, cacheable=bool) == "new"
    assert cache.get("b", lambda: "other", 0.0, cacheable=bool) == "other"


def test_a_value_that_is_not_waited_for_is_available_once_computed() -> None:
    cache, go = StaleCache[str](), threading.Event()

    def slow() -> str:
        go.wait(60)
        return "first"

    assert cache.get_computed("a", slow, 0.0) is None
    assert cache.get_computed("a", lambda: "second", 0.0) is None  # one thread is at it already
    go.set()
    until = time.monotonic() + 60
    while cache.get_computed("a", lambda: "never", 0.0) != "first":
        assert time.monotonic() < until
        time.sleep(0.01)
    assert cache.get_computed("a", lambda: "third", USABLE_S + 1) is None
