"""Shutdown flags, set by a signal or by another thread."""

import os
import select
import signal
from types import FrameType
from typing import Protocol


class ShutdownFlag(Protocol):
    """Whether to shut down; a threading.Event is one."""

    def is_set(self) -> bool:
        """Return whether shutdown was requested."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds; return True as soon as shutdown is requested."""
        ...


class SignalShutdownFlag:
    """A flag set by SIGTERM or SIGINT.

    Not a threading.Event: the thread interrupted by the signal handler may hold its lock.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._set = False

    def listen(self) -> None:
        """Install the signal handlers; main thread only."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def set(self) -> None:
        """Request shutdown; safe within a signal handler."""
        if not self._set:
            self._set = True
            os.write(self._writer, b"x")

    def is_set(self) -> bool:
        """See `ShutdownFlag`."""
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        """See `ShutdownFlag`."""
        select.select([self._reader], [], [], timeout)
        return self._set

    def fileno(self) -> int:
        """Return a file descriptor that becomes readable when shutdown is requested."""
        return self._reader

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._reader)
        os.close(self._writer)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.set()
