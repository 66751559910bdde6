"""Sends chats and mails in a process of its own, with limits on its memory and on the time of each message.

The libraries of apprise read the answer of a chat or a mail server to its end: one without an end filled 1.5 GB in
eight seconds, and one that comes byte by byte held its endpoint up for ever. Neither a worker nor `serve` may end or
hang because of that. This module imports nothing of the service, so that the process starts quickly.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any, Final

MEMORY_BYTES = 256 << 20  # of data and stacks; 40 MiB at rest
START_S = 60.0  # until it has imported apprise, 0.4 s on an idle machine
_READY: Final = b"ready"


class ChatProcess:
    """The process: started with the first message, and again after it ended. For one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: _Running | None = None

    def notify(self, message: Mapping[str, str], seconds: float) -> bool:
        """Send a message; returns whether the receiver took it.

        Args:
            message: `url` of apprise, `title`, `body` and `body_format` (text or html).
            seconds: the time limit.

        Raises:
            OSError: the process could not be started, ended, or had no answer in time.
        """
        with self._lock:
            if self._running is None or self._running.ended:
                self._running = _Running()
            return self._running.notify(message, seconds)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._running is not None:
                self._running.stop()
                self._running = None


class _Running:
    """One process. Its end of the connection is closed with this one, which ends it."""

    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        self._owner = os.getpid()
        try:
            process = subprocess.Popen(  # noqa: S603 - this program itself
                [sys.executable, "-m", __name__, str(theirs.fileno()), str(MEMORY_BYTES)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)},
            )
        finally:
            theirs.close()
        self.stop = weakref.finalize(self, _end, process, self._connection)
        self._receive(START_S)

    @property
    def ended(self) -> bool:
        """Whether it ended, or is the process of a parent of this one."""
        return not self.stop.alive or self._owner != os.getpid()

    def notify(self, message: Mapping[str, str], seconds: float) -> bool:
        """See `ChatProcess.notify`."""
        try:
            self._connection.send_bytes(json.dumps([seconds, message]).encode())
        except OSError:
            self.stop()
            raise
        sent, problem = json.loads(self._receive(seconds))
        if problem is not None:
            raise OSError(problem)
        return bool(sent)

    def _receive(self, seconds: float) -> bytes:
        try:
            if self._connection.poll(seconds):
                return self._connection.recv_bytes()
        except (EOFError, OSError):
            self.stop()
            raise OSError("the process that sends messages ended, which an answer of the receiver may cause") from None
        self.stop()
        raise OSError(f"the receiver had no complete answer within {seconds:g} s")


def _end(process: "subprocess.Popen[bytes]", connection: Connection) -> None:
    connection.close()
    process.kill()
    process.wait()


def instantiate(apprise: Any, url: str) -> Any:
    """The service of an address of apprise; None if it is none."""
    asset = apprise.AppriseAsset(app_id="Faultline", app_desc="Faultline", async_mode=False, plugin_paths=[])
    return apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)


def main(arguments: list[str]) -> None:
    """Send messages until the other end is closed. The arguments: the number of the connection, and bytes of memory."""
    for one in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group; the caller still needs answers
        signal.signal(one, signal.SIG_IGN)
    limit = int(arguments[1])
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    connection = Connection(int(arguments[0]))
    import apprise  # noqa: PLC0415 - an extra, and after the limits

    with suppress(EOFError, OSError):
        connection.send_bytes(_READY)
        while True:
            seconds, message = json.loads(connection.recv_bytes())
            signal.alarm(int(seconds) + 1)  # ends it also where the caller was killed
            connection.send_bytes(json.dumps(_answer(apprise, message)).encode())
            signal.alarm(0)


def _answer(apprise: Any, message: Mapping[str, str]) -> tuple[bool, str | None]:
    """Whether the receiver took the message, and why it could not be sent."""
    try:
        service = instantiate(apprise, message["url"])
        sent = service is not None and service.notify(
            title=message["title"],
            body=message["body"],
            notify_type=apprise.NotifyType.INFO,
            body_format=message["body_format"],
        )
        return bool(sent), None
    except MemoryError:
        return False, "the answer of the receiver is too large"
    except Exception as error:  # noqa: BLE001 - the caller waits for an answer
        return False, f"{type(error).__name__}: {error}"[:300]


if __name__ == "__main__":
    main(sys.argv[1:])
