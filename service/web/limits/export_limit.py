"""How many exports run at one time: each uses a thread and a connection of the database until its client has it all."""

import threading
from collections import Counter

from service.errors import TooManyRequests

# Together: measured, see docs/security.md, "Memory": the peak stays below 1.5 times that of an idle server.
MOST_RUNNING = 3
MOST_OF_ONE = 2  # by one caller, who then does not keep all others waiting
RETRY_AFTER_S = 10


class ExportLimit:
    """Counts the exports that run in this process."""

    def __init__(self, together: int = MOST_RUNNING, of_one: int = MOST_OF_ONE) -> None:
        self._together = together
        self._of_one = of_one
        self._running: Counter[str] = Counter()
        self._lock = threading.Lock()

    def begin(self, sender: str) -> None:
        """Count an export of a caller until `end`.

        Raises:
            TooManyRequests: as many run already.
        """
        with self._lock:
            if self._running[sender] >= self._of_one:
                detail = f"{self._of_one} exports of yours are still running"
            elif self._running.total() >= self._together:
                detail = f"{self._together} exports are running already"
            else:
                self._running[sender] += 1
                return
        raise TooManyRequests(f"{detail}: try again when one has ended", RETRY_AFTER_S)

    def end(self, sender: str) -> None:
        """An export of a caller has ended, or its client is gone."""
        with self._lock:
            self._running[sender] -= 1
            self._running += Counter()  # forgets callers without exports
