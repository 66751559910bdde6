"""A cache of counts of hours that are over: pages of the same period ask for them again and again."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any

MOST_ROWS = 40_000  # of all results together; a row takes about 200 bytes


class CountCache:
    """Results of questions by key, the most recently used ones. Safe to share between threads.

    A key has to say which state of the database the result is of: nothing here becomes outdated.
    """

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
        self._most_rows = most_rows
        self._guard = threading.Lock()
        self._found: OrderedDict[Hashable, tuple[Any, ...]] = OrderedDict()
        self._rows = 0

    def get(self, key: Hashable, read: Callable[[], Iterable[Any]]) -> tuple[Any, ...]:
        """The rows of a key; `read` gives them where they are not in the cache."""
        with self._guard:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        rows = tuple(read())
        with self._guard:
            if key not in self._found:
                self._found[key] = rows
                self._rows += len(rows) + 1
            while self._rows > self._most_rows:
                self._rows -= len(self._found.popitem(last=False)[1]) + 1
        return rows
