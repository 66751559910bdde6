"""Threads that drain the outbox: one finds due work, and one per endpoint sends it."""

import logging
import threading
import time
from typing import Self

from service.deliveries.drain import ROUTE_BATCH, Drain
from service.errors import Unavailable
from service.periodic import PeriodicTask

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
EXPIRE_EVERY_S = 600.0
JOIN_S = 5.0


class Runner:
    """Runs the deliveries during a `with` block; errors are logged and retried, and never reach the caller.

    A request that is under way at the end gets a moment; an interrupted one is sent again when its lease has expired.
    """

    def __init__(self, drain: Drain, *, look_every_s: float = LOOK_EVERY_S) -> None:
        self._drain = drain
        self._stop = threading.Event()
        self._wake = {name: threading.Event() for name in drain.targets}
        self._expired = time.monotonic()
        self._search = PeriodicTask(self._find_due, look_every_s, name="finding due deliveries")
        self._threads = [
            threading.Thread(target=self._send, args=(name,), name=f"deliver-{name}", daemon=True)
            for name in drain.targets
        ]

    def __enter__(self) -> Self:
        self._search.start()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop.set()
        for wake in self._wake.values():
            wake.set()
        until = time.monotonic() + JOIN_S
        self._search.close()
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        if not any(thread.is_alive() for thread in self._threads):
            for target in self._drain.targets.values():
                target.channel.close()

    def _find_due(self) -> None:
        while self._drain.route() == ROUTE_BATCH and not self._stop.is_set():
            pass
        for name in self._drain.due():
            self._wake[name].set()
        if time.monotonic() - self._expired >= EXPIRE_EVERY_S:
            self._drain.expire()
            self._expired = time.monotonic()

    def _send(self, name: str) -> None:
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
                log.info("deliveries to %s are retried later: %s", name, error.detail)
            except Exception:
                log.exception("delivering to %s failed; it will be tried again", name)
