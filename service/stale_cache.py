"""A cache that serves stale values at once and recomputes them in the background.

Pages show the time at which a cached figure was computed.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from service.errors import FaultlineError

V = TypeVar("V")
FRESH_S = 60.0  # age in seconds below which a value is not recomputed
# A value that takes long is recomputed less often: its computation takes at most this share of the time (judgement).
BUSY_SHARE = 0.05
USABLE_S = 900.0  # age in seconds above which a value is not served
MOST = 64  # maximum number of values
MOST_WAITING = 16  # threads of a process that recompute a value or wait for it; further values begin later (judgement)
_log = logging.getLogger(__name__)
# Of all caches of a process: several long queries at a time would take the database's cores from other requests.
_in_background = threading.Lock()
_waiting = threading.BoundedSemaphore(MOST_WAITING)


class _Turn:
    """The right to compute the value of a key, and how many threads have it or wait for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.threads = 0


class StaleCache(Generic[V]):
    """Values by key; one thread at a time computes each, and one of the process recomputes values in the background.

    `timer` gives the seconds with which the time of a computation is measured.
    """

    def __init__(self, timer: Callable[[], float] = time.perf_counter) -> None:
        self._timer = timer
        self._guard = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[float, V, float]] = OrderedDict()  # when, what, fresh for seconds
        self._busy: dict[Hashable, _Turn] = {}  # of keys whose value is being computed

    def get(self, key: Hashable, compute: Callable[[], V], now: float, *, cacheable: Callable[[V], bool]) -> V:
        """Return the value of a key, at most `USABLE_S` old; `now` in seconds of a monotonic clock.

        Args:
            key: the key of the value.
            compute: computes the value. Its errors reach the caller; in the background they are logged.
            now: the current time in seconds.
            cacheable: whether to cache a value; others are computed on every call.
        """
        found = self._usable(key, compute, now)
        if found is not None:
            return found[1]
        stale = self._find(key)
        with self._turn(key):
            again = self._find(key)
            if again is not None and again is not stale:
                return again[1]  # another thread has computed it in the meantime
            made, took_s = self._timed(compute)
            if cacheable(made):
                self._put(key, made, now, took_s)
            return made

    def get_computed(self, key: Hashable, compute: Callable[[], V], now: float) -> V | None:
        """Return the value of a key, at most `USABLE_S` old, or None until a background thread has computed it.

        Args:
            key: the key of the value.
            compute: computes the value. Its errors are logged.
            now: the current time in seconds of a monotonic clock.
        """
        found = self._usable(key, compute, now)
        if found is None:
            self._begin(key, compute, now)
            return None
        return found[1]

    def _usable(self, key: Hashable, compute: Callable[[], V], now: float) -> tuple[float, V, float] | None:
        """The value, unless it is too old; if it is not fresh, a thread begins to recompute it."""
        found = self._find(key)
        if found is None or not 0 <= now - found[0] < USABLE_S:
            return None
        if now - found[0] >= found[2]:
            self._begin(key, compute, now)
        return found

    def _begin(self, key: Hashable, compute: Callable[[], V], now: float) -> None:
        """Recompute the value in a thread, unless a thread does so already, or too many values wait for theirs."""
        with self._guard:
            if key in self._busy or not _waiting.acquire(blocking=False):
                return
            turn = self._busy[key] = _Turn()
            turn.threads = 1
            turn.lock.acquire()  # nobody else has it
        try:
            threading.Thread(target=self._recompute, args=(key, compute, now, turn), daemon=True).start()
        except BaseException:
            self._ended(key, turn)  # no thread runs that would do so; later calls would wait for ever
            raise

    def _recompute(self, key: Hashable, compute: Callable[[], V], now: float, turn: _Turn) -> None:
        try:
            with _in_background:
                value, took_s = self._timed(compute)
            self._put(key, value, now, took_s)
        except FaultlineError as error:
            _log.warning("recomputing %s failed: %s", key, error)
        except Exception:  # noqa: BLE001 - nobody waits for this thread, and the next one tries again
            _log.exception("recomputing %s failed", key)
        finally:
            self._ended(key, turn)

    def _ended(self, key: Hashable, turn: _Turn) -> None:
        """The thread of `_begin` has ended."""
        turn.lock.release()
        self._leave(key, turn)
        _waiting.release()

    def _timed(self, compute: Callable[[], V]) -> tuple[V, float]:
        """The value, and the seconds that it took."""
        began = self._timer()
        return compute(), self._timer() - began

    def _find(self, key: Hashable) -> tuple[float, V, float] | None:
        with self._guard:
            return self._values.get(key)

    def _put(self, key: Hashable, value: V, now: float, took_s: float) -> None:
        # Recomputed well before it may not be served any more, so that no request waits for it.
        fresh_s = min(max(FRESH_S, took_s / BUSY_SHARE), USABLE_S / 2)
        with self._guard:
            self._values[key] = (now, value, fresh_s)
            self._values.move_to_end(key)
            while len(self._values) > MOST:
                self._values.popitem(last=False)

    @contextmanager
    def _turn(self, key: Hashable) -> Iterator[None]:
        """Wait until no other thread computes the value of a key; then this one does."""
        with self._guard:
            turn = self._busy.setdefault(key, _Turn())
            turn.threads += 1
        try:
            with turn.lock:
                yield
        finally:
            self._leave(key, turn)

    def _leave(self, key: Hashable, turn: _Turn) -> None:
        """A thread does not need a turn any more; the last one removes it, so that keys take no memory."""
        with self._guard:
            turn.threads -= 1
            if not turn.threads:
                del self._busy[key]
