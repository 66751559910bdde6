"""A value that takes long is served from the cache, recomputed in the background, and never too old."""

import threading
import time
import tracemalloc

import pytest

from service.stale_cache import BUSY_SHARE, FRESH_S, MOST_WAITING, USABLE_S, StaleCache


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


class Timer:
    """Each computation takes these seconds."""

    def __init__(self, takes_s: float) -> None:
        self._takes_s = takes_s
        self._calls = 0

    def __call__(self) -> float:
        self._calls += 1
        return self._takes_s * (self._calls // 2)


@pytest.mark.parametrize(
    ("takes_s", "fresh_s"), [(0.1, FRESH_S), (10.0, 10.0 / BUSY_SHARE), (100.0, USABLE_S / 2)], ids=str
)
def test_a_value_that_takes_long_is_recomputed_less_often(takes_s: float, fresh_s: float) -> None:
    cache, computed = StaleCache[str](Timer(takes_s)), threading.Event()

    def again() -> str:
        computed.set()
        return "second"

    cache.get("a", lambda: "first", 0.0, cacheable=bool)
    cache.get("a", again, fresh_s - 1, cacheable=bool)
    assert not computed.is_set()
    cache.get("a", again, fresh_s + 1, cacheable=bool)
    assert computed.wait(60)


def test_memory_does_not_grow_with_keys_that_are_asked_for_once() -> None:
    cache = StaleCache[str]()

    def ask(first: int) -> int:
        """The bytes that are in use after a thousand further keys."""
        for number in range(first, first + 1_000):
            cache.get(f"a period that begins at {number}", lambda: "x", 0.0, cacheable=lambda _: False)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        begin = ask(0)
        assert ask(1_000) - begin < 20_000
    finally:
        tracemalloc.stop()


def test_few_values_wait_for_the_background_at_a_time() -> None:
    cache, go = StaleCache[str](), threading.Event()

    def slow() -> str:
        go.wait(60)
        return "computed"

    before = threading.active_count()
    for number in range(10 * MOST_WAITING):
        cache.get_computed(number, slow, 0.0)
    assert threading.active_count() - before <= MOST_WAITING
    go.set()
    until = time.monotonic() + 60
    while cache.get_computed(10 * MOST_WAITING, slow, 0.0) is None:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_one_value_at_a_time_is_recomputed_in_the_background() -> None:
    caches, go = [StaleCache[str](), StaleCache[str]()], threading.Event()
    running: list[str] = []

    def noted(name: str) -> str:
        running.append(name)
        go.wait(60)
        return "computed"

    caches[0].get_computed("a", lambda: noted("a"), 0.0)
    caches[1].get_computed("b", lambda: noted("b"), 0.0)
    until = time.monotonic() + 60
    while not running:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert len(running) == 1
    go.set()
    while any(cache.get_computed(key, lambda: "", 0.0) is None for cache, key in zip(caches, "ab", strict=True)):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert sorted(running) == ["a", "b"]


def test_a_thread_that_cannot_start_does_not_block_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unstartable(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    cache: StaleCache[int] = StaleCache()
    with monkeypatch.context() as patched:
        patched.setattr("service.stale_cache.threading.Thread", Unstartable)
        with pytest.raises(RuntimeError):
            cache.get_computed("a", lambda: 1, 0.0)
    found: list[int] = []
    later = threading.Thread(
        target=lambda: found.append(cache.get("a", lambda: 1, 0.0, cacheable=lambda _: True)), daemon=True
    )
    later.start()
    later.join(10)
    assert found == [1]


def test_an_unexpected_error_in_the_background_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    cache, failed = StaleCache[str](), threading.Event()
    cache.get("a", lambda: "first", 0.0, cacheable=bool)

    def broken() -> str:
        failed.set()
        raise KeyError("odd")

    assert cache.get("a", broken, FRESH_S + 1, cacheable=bool) == "first"
    assert failed.wait(60)
    until = time.monotonic() + 60
    while "recomputing a failed" not in caplog.text:
        assert time.monotonic() < until
        time.sleep(0.01)
