"""Sends chats and mails in a process of its own, with limits on its memory and on the time of each message.

The libraries of apprise read the answer of a chat or a mail server to its end: one without an end filled 1.5 GB in
eight seconds, and one that comes byte by byte held its endpoint up for ever. Neither a worker nor `serve` may end or
hang because of that. This module imports little of the service, so that the process starts quickly.

These libraries also look up the name of a receiver themselves, after its address was checked, and whoever answers for
the name may give another address then. So the process checks every connection at the moment that it is made.
"""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address, ip_network
from multiprocessing.connection import Connection, Pipe
from typing import Any, Final

from service.internet_addresses import Network, inside, is_public

MEMORY_BYTES = 256 << 20  # of data and stacks; 40 MiB at rest
START_S = 60.0  # until it has imported apprise, 0.4 s on an idle machine
_READY: Final = b"ready"
_CONNECTS: Final = ("socket.connect", "socket.sendto", "socket.sendmsg")  # audit events of Python


class ChatProcess:
    """The process: started with the first message, and again after it ended. For one thread at a time.

    Args:
        allow: networks that it may connect to besides public ones.
    """

    def __init__(self, allow: Sequence[Network] = ()) -> None:
        self._allow = tuple(allow)
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
                self._running = _Running(self._allow)
            return self._running.notify(message, seconds)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._running is not None:
                self._running.stop()
                self._running = None


class _Running:
    """One process. Its end of the connection is closed with this one, which ends it."""

    def __init__(self, allow: Sequence[Network]) -> None:
        self._connection, theirs = Pipe()
        self._owner = os.getpid()
        try:
            process = subprocess.Popen(  # noqa: S603 - this program itself
                [sys.executable, "-m", __name__, str(theirs.fileno()), str(MEMORY_BYTES), *map(str, allow)],
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
    """Send messages until the other end is closed.

    Args:
        arguments: the number of the connection, bytes of memory, and networks that connections may lead to besides
            public ones.
    """
    for one in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group; the caller still needs answers
        signal.signal(one, signal.SIG_IGN)
    limit = int(arguments[1])
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    connection = Connection(int(arguments[0]))
    import apprise  # noqa: PLC0415 - an extra, and after the limits

    gate = _Gate([ip_network(one) for one in arguments[2:]])
    sys.addaudithook(gate)  # of the interpreter: no library connects without it
    with suppress(EOFError, OSError):
        connection.send_bytes(_READY)
        while True:
            seconds, message = json.loads(connection.recv_bytes())
            signal.alarm(int(seconds) + 1)  # ends it also where the caller was killed
            connection.send_bytes(json.dumps(_answer(apprise, message, gate)).encode())
            signal.alarm(0)


class _Gate:
    """Refuses connections to addresses that are not permitted. `refused`: the last one of the present message."""

    def __init__(self, allow: Sequence[Network]) -> None:
        self._allow = tuple(allow)
        self.refused: str | None = None

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _CONNECTS or arguments[0].family not in {socket.AF_INET, socket.AF_INET6}:
            return
        if arguments[1] is None:  # sent over a connection, which was checked when it was made
            return
        host = arguments[1][0] if isinstance(arguments[1], tuple) else ""
        if not self._permits(str(host)):
            self.refused = f"connects to {str(host)[:80]}: internal, and not in a network under [network] allow"
            raise PermissionError(self.refused)

    def _permits(self, host: str) -> bool:
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:  # a name, which would be looked up once more
            return False
        return is_public(address) or any(inside(address, network) for network in self._allow)


def _answer(apprise: Any, message: Mapping[str, str], gate: _Gate) -> tuple[bool, str | None]:
    """Whether the receiver took the message, and why it could not be sent."""
    gate.refused = None
    try:
        service = instantiate(apprise, message["url"])
        sent = service is not None and service.notify(
            title=message["title"],
            body=message["body"],
            notify_type=apprise.NotifyType.INFO,
            body_format=message["body_format"],
        )
        return bool(sent), None if sent else gate.refused
    except MemoryError:
        return False, "the answer of the receiver is too large"
    except Exception as error:  # noqa: BLE001 - the caller waits for an answer
        return False, f"{type(error).__name__}: {error}"[:300]


if __name__ == "__main__":
    main(sys.argv[1:])
