"""The end, asked for by a signal or by another thread."""

import os
import select
import signal
from types import FrameType
from typing import Protocol


class ShutdownFlag(Protocol):
    """Whether to end; a threading.Event is one."""

    def is_set(self) -> bool:
        """Whether the end was asked for."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Return after `timeout` seconds, or as soon as the end is asked for; then True."""
        ...


class SignalShutdownFlag:
    """Set by SIGTERM or SIGINT.

    Not a threading.Event: its lock may be held by the very thread that the signal handler interrupts.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._set = False

    def listen(self) -> None:
        """Take the signals; main thread only."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def set(self) -> None:
        """Ask for the end; safe within a signal handler."""
        if not self._set:
            self._set = True
            os.write(self._writer, b"x")

    def is_set(self) -> bool:
        """See `Stop`."""
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        """See `Stop`."""
        select.select([self._reader], [], [], timeout)
        return self._set

    def fileno(self) -> int:
        """A descriptor that is readable once the end was asked for."""
        return self._reader

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._reader)
        os.close(self._writer)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.set()
