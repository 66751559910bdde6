"""A second consumer beside the first, of what nodes say: it ends with the first, and its failure ends the first."""

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
    """Runs `work` in a thread of its own from `with` to its end.

    Args:
        work: consumes until the stop it is given is set.
        stop: the first one's; `Second.stop` is to be used by the first instead, it is also set when `work` fails.
    """

    def __init__(self, work: Callable[[ShutdownFlag], None], stop: ShutdownFlag) -> None:
        self._work = work
        self._end = threading.Event()
        self._failed = threading.Event()
        self._error: FaultlineError | None = None
        self._thread = threading.Thread(target=self._run, name="second-consumer", daemon=True)
        self.stop: ShutdownFlag = _AnyShutdownFlag(stop, self._failed)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it; what made it fail is raised here, unless the first one failed itself."""
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
            log.exception("the second consumer failed")
            self._error = FaultlineError(f"the second consumer failed: {type(error).__name__}")
        finally:
            if self._error is not None:
                self._failed.set()


class _AnyShutdownFlag:
    """Set as soon as one of two is."""

    def __init__(self, first: ShutdownFlag, second: ShutdownFlag) -> None:
        self._first = first
        self._second = second

    def is_set(self) -> bool:
        """See `Stop`."""
        return self._first.is_set() or self._second.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """See `Stop`; the second one is seen when the wait is over."""
        return self._second.is_set() or self._first.wait(timeout) or self._second.is_set()
