"""A consumer in a background thread: it ends with the main consumer, and its failure ends the main consumer."""

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from service.errors import FaultlineError
from service.shutdown import ShutdownFlag

log = logging.getLogger(__name__)

JOIN_S = 30.0


class BackgroundConsumer:
    """Runs `work` in its own thread during the `with` block.

    Args:
        work: consumes until the flag passed to it is set.
        stop: the flag of the process; the main consumer uses `BackgroundConsumer.stop` instead, which is also set when
            `work` fails.
    """

    def __init__(self, work: Callable[[ShutdownFlag], None], stop: ShutdownFlag) -> None:
        self._work = work
        self._end = threading.Event()
        self._failed = threading.Event()
        self._error: FaultlineError | None = None
        self._thread = threading.Thread(target=self._run, name="background-consumer", daemon=True)
        self.stop: ShutdownFlag = _AnyShutdownFlag(stop, self._failed)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the thread and raise its error, unless the main consumer failed itself."""
        self._end.set()
        self._thread.join(JOIN_S)
        if self._error is not None and error is None:
            raise self._error

    def _run(self) -> None:
        try:
            self._work(self._end)
        except FaultlineError as error:
            self._error = error
        except Exception as error:
            log.exception("the background consumer failed")
            self._error = FaultlineError(f"the background consumer failed: {type(error).__name__}")
        finally:
            if self._error is not None:
                self._failed.set()


class _AnyShutdownFlag:
    """Set as soon as one of two flags is set."""

    def __init__(self, first: ShutdownFlag, second: ShutdownFlag) -> None:
        self._first = first
        self._second = second

    def is_set(self) -> bool:
        """See `ShutdownFlag`."""
        return self._first.is_set() or self._second.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """See `ShutdownFlag`; the second flag is checked before and after the wait."""
        return self._second.is_set() or self._first.wait(timeout) or self._second.is_set()
