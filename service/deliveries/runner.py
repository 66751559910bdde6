"""Threads that drain the outbox: one finds due work, and one per endpoint sends it."""

import logging
import threading
import time

from service.deliveries.drain import ROUTE_BATCH, Drain
from service.errors import Unavailable

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
EXPIRE_EVERY_S = 600.0
JOIN_S = 5.0


class Runner:
    """Runs the deliveries until closed; errors are logged and retried, and never reach the caller."""

    def __init__(self, drain: Drain, *, look_every_s: float = LOOK_EVERY_S) -> None:
        self._drain = drain
        self._look_every_s = look_every_s
        self._stop = threading.Event()
        self._wake = {name: threading.Event() for name in drain.targets}
        self._threads = [threading.Thread(target=self._look, name="deliver", daemon=True)]
        self._threads += [
            threading.Thread(target=self._tell, args=(name,), name=f"deliver-{name}", daemon=True)
            for name in drain.targets
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop the threads.

        A current request gets a moment; an interrupted one is sent again when its lease has expired.
        """
        self._stop.set()
        for wake in self._wake.values():
            wake.set()
        until = time.monotonic() + JOIN_S
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        if not any(thread.is_alive() for thread in self._threads):
            for target in self._drain.targets.values():
                target.channel.close()

    def _look(self) -> None:
        expired = time.monotonic()
        while not self._stop.wait(self._look_every_s):
            try:
                while self._drain.route() == ROUTE_BATCH and not self._stop.is_set():
                    pass
                for name in self._drain.due():
                    self._wake[name].set()
                if time.monotonic() - expired >= EXPIRE_EVERY_S:
                    self._drain.expire()
                    expired = time.monotonic()
            except Unavailable as error:
                log.info("deliveries later: %s", error.detail)
            except Exception:
                log.exception("looking for deliveries failed; it will be tried again")

    def _tell(self, name: str) -> None:
        wake = self._wake[name]
        while True:
            wake.wait()
            wake.clear()
            if self._stop.is_set():
                return
            try:
                while not self._stop.is_set() and self._drain.deliver(name, self._stop):
                    pass
            except Unavailable as error:
                log.info("deliveries to %s later: %s", name, error.detail)
            except Exception:
                log.exception("delivering to %s failed; it will be tried again", name)
