"""Functions called periodically in background threads."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from service.errors import Unavailable

log = logging.getLogger(__name__)

JOIN_S = 5.0


class PeriodicTask:
    """Calls `action` every `interval_s` seconds in its own thread until closed; errors are logged under `name`."""

    def __init__(self, action: Callable[[], object], interval_s: float = 5.0, *, name: str = "periodic task") -> None:
        self._name = name
        self._action = action
        self._interval_s = interval_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop; a running call gets some seconds to finish (transactions make an interrupted one harmless)."""
        self._end.set()
        self._thread.join(JOIN_S)

    def _run(self) -> None:
        while not self._end.wait(self._interval_s):
            try:
                self._action()
            except Unavailable as error:
                log.info("%s is retried later: %s", self._name, error.detail)
            except Exception:
                log.exception("%s failed and will be retried", self._name)


@contextmanager
def running(tasks: Sequence[PeriodicTask]) -> Iterator[None]:
    """Run tasks during the `with` block."""
    for task in tasks:
        task.start()
    try:
        yield
    finally:
        for task in tasks:
            task.close()
