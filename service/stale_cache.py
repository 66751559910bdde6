"""A cache that serves stale values at once and recomputes them in the background.

Pages show the time at which a cached figure was computed.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from service.errors import FaultlineError

V = TypeVar("V")
FRESH_S = 60.0  # age in seconds below which a value is not recomputed
USABLE_S = 900.0  # age in seconds above which a value is not served
MOST = 64  # maximum number of values
_log = logging.getLogger(__name__)


class StaleCache(Generic[V]):
    """Values by key; one thread at a time computes each."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()
        self._busy: dict[Hashable, threading.Lock] = {}

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
            made = compute()
            if cacheable(made):
                self._put(key, made, now)
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

    def _usable(self, key: Hashable, compute: Callable[[], V], now: float) -> tuple[float, V] | None:
        """The value, unless it is too old; if it is not fresh, a thread begins to recompute it."""
        found = self._find(key)
        if found is None or not 0 <= now - found[0] < USABLE_S:
            return None
        if now - found[0] >= FRESH_S:
            self._begin(key, compute, now)
        return found

    def _begin(self, key: Hashable, compute: Callable[[], V], now: float) -> None:
        """Recompute the value in a thread, unless one does so already."""
        turn = self._turn(key)
        if turn.acquire(blocking=False):
            threading.Thread(target=self._recompute, args=(key, compute, now, turn), daemon=True).start()

    def _recompute(self, key: Hashable, compute: Callable[[], V], now: float, turn: threading.Lock) -> None:
        try:
            self._put(key, compute(), now)
        except FaultlineError as error:
            _log.warning("recomputing %s failed: %s", key, error)
        finally:
            turn.release()

    def _find(self, key: Hashable) -> tuple[float, V] | None:
        with self._guard:
            return self._values.get(key)

    def _put(self, key: Hashable, value: V, now: float) -> None:
        with self._guard:
            self._values[key] = (now, value)
            self._values.move_to_end(key)
            while len(self._values) > MOST:
                gone, _ = self._values.popitem(last=False)
                self._busy.pop(gone, None)

    def _turn(self, key: Hashable) -> threading.Lock:
        with self._guard:
            return self._busy.setdefault(key, threading.Lock())
