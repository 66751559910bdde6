"""Background work: functions called periodically in threads, how often the service calls each, and work in portions."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from prometheus_client import Gauge

from service.errors import Unavailable

log = logging.getLogger(__name__)

JOIN_S = 5.0

# The intervals of the service's tasks; leases let one process at a time do the work.
REPORTS_S: Final = 60.0
NODE_STATISTICS_S: Final = 5.0
LATE_REVISIONS_S: Final = 5.0
AUTOMATION_S: Final = 5.0
RETENTION_S: Final = 600.0
SEALS_S: Final = 60.0
AUDIT_HEADS_S: Final = 60.0
GROUP_COUNTS_S: Final = 1.0
AUDIT_SAMPLES_S: Final = 600.0
HOURLY_COUNTS_S: Final = 60.0
UNDELIVERABLE_MESSAGES_S: Final = 60.0


class PeriodicTask:
    """Calls `action` every `interval_s` seconds in its own thread until closed; errors are logged under `name`.

    `succeeded` is set to the time of the start and of each call without an error, under the label `name`.
    """

    def __init__(self, action: Callable[[], object], interval_s: float = 5.0, *, name: str) -> None:
        self.succeeded: Gauge | None = None
        self._name = name
        self._action = action
        self._interval_s = interval_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._note_success()
        self._thread.start()

    def close(self) -> None:
        """Stop; a running call gets some seconds to finish (transactions make an interrupted one harmless)."""
        self._end.set()
        self._thread.join(JOIN_S)

    def _run(self) -> None:
        while not self._end.wait(self._interval_s):
            try:
                self._action()
                self._note_success()
            except Unavailable as error:
                log.info("%s is retried later: %s", self._name, error.detail)
            except Exception:
                log.exception("%s failed and will be retried", self._name)

    def _note_success(self) -> None:
        if self.succeeded is not None:
            self.succeeded.labels(self._name).set_to_current_time()


@contextmanager
def running(tasks: Sequence[PeriodicTask], succeeded: Gauge) -> Iterator[None]:
    """Run tasks during the `with` block, with the metric of their last successes."""
    for task in tasks:
        task.succeeded = succeeded
        task.start()
    try:
        yield
    finally:
        for task in tasks:
            task.close()


def in_portions(
    step: Callable[[], bool],
    sleep: Callable[[float], object] = time.sleep,
    now: Callable[[], float] = time.perf_counter,
) -> None:
    """Repeat a step until it says that nothing is left, and pause after each as long as it took.

    SQLite has one writer at a time, and those that wait for it look only now and then whether it is their turn: without
    a pause, work of many portions would keep them out until it is done.

    Args:
        step: does one portion in its own transaction; returns whether there may be more.
        sleep: waits for some seconds.
        now: a clock, in seconds.
    """
    while True:
        began = now()
        if not step():
            return
        sleep(now() - began)
