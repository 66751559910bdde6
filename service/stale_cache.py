"""What takes long to reckon, kept for a while: asked again it is there at once, and is reckoned anew behind the answer.

Whoever shows such a figure says when it was reckoned.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from service.errors import FaultlineError

V = TypeVar("V")
FRESH_S = 60.0  # so long nothing is reckoned anew
USABLE_S = 900.0  # older than that is not shown
MOST = 64  # values
_log = logging.getLogger(__name__)


class Kept(Generic[V]):
    """Values by key, each reckoned by one thread at a time."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()
        self._busy: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, reckon: Callable[[], V], now: float, *, worth: Callable[[V], bool]) -> V:
        """The value of a key, at most `USABLE_S` old; `now` in seconds of a clock that never goes back.

        Args:
            key: what is asked for.
            reckon: makes it; its errors are the caller's, except behind an answer, where they are logged.
            now: the present.
            worth: whether a value is worth keeping; what is quickly made is made each time.
        """
        found = self._find(key)
        if found is not None and 0 <= now - found[0] < FRESH_S:
            return found[1]
        if found is not None and 0 <= now - found[0] < USABLE_S:
            turn = self._turn(key)
            if turn.acquire(blocking=False):
                threading.Thread(target=self._again, args=(key, reckon, now, turn), daemon=True).start()
            return found[1]
        with self._turn(key):
            again = self._find(key)
            if again is not None and again is not found:
                return again[1]  # somebody else made it meanwhile
            made = reckon()
            if worth(made):
                self._put(key, made, now)
            return made

    def _again(self, key: Hashable, reckon: Callable[[], V], now: float, turn: threading.Lock) -> None:
        try:
            self._put(key, reckon(), now)
        except FaultlineError as error:
            _log.warning("%s could not be reckoned anew: %s", key, error)
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
