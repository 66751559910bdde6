"""Something done now and then beside the loop, which must not wait for it."""

import logging
import threading
from collections.abc import Callable

from service.errors import Unavailable

log = logging.getLogger(__name__)

JOIN_S = 5.0


class PeriodicTask:
    """Calls `action` every `interval_s` in a thread of its own until closed; its errors are logged and survived."""

    def __init__(self, action: Callable[[], object], interval_s: float = 5.0) -> None:
        self._action = action
        self._interval_s = interval_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="beside-the-consumer", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End; an action in hand gets a moment to finish (one that is cut off does nothing by halves)."""
        self._end.set()
        self._thread.join(JOIN_S)

    def _run(self) -> None:
        while not self._end.wait(self._interval_s):
            try:
                self._action()
            except Unavailable as error:
                log.info("later: %s", error.detail)
            except Exception:
                log.exception("what is done beside the consumer failed; it will be tried again")
