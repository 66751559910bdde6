"""Runs the client of a bucket in a process of its own, with limits on its memory and on the time of each call.

The client (Rust) reads answers without a limit: one with a false length ends its process ("memory allocation of ...
bytes failed"), an endless one fills gigabytes within the time of a request, and a list that never ends is read for
ever. All three came from a test server. Neither a worker nor `serve` may end or hang because of that.
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
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from service.errors import ConfigurationError, FaultlineError, NotFound, Unavailable
from service.log_storage.buckets import BucketObjects
from service.log_storage.options import LogStorageOptions

MEMORY_BYTES = 512 << 20  # of data and stacks; 36 MiB at rest, and 16 logs at a time of a few MiB at most
CLIENT_THREADS, STACK_BYTES = 2, 1 << 20  # the client would start a thread for each core
CALL_S = 20.0  # for one object; the client itself gives up after two tries of 5 s
LIST_S = 60.0
REMOVE_S = 600.0  # for all objects of a day
PARALLEL = 16
_ERRORS: Mapping[str, type[FaultlineError]] = {one.__name__: one for one in (ConfigurationError, NotFound, Unavailable)}


class IsolatedBucket:
    """A bucket; see `BucketObjects`. Its process is started on first use, again after it ended, and for each fork.

    Args:
        options: the address of the bucket.

    Raises:
        ConfigurationError: the client is not installed, or the environment has wrong options for it.
    """

    def __init__(self, options: LogStorageOptions) -> None:
        BucketObjects(options)  # finds wrong options; nothing is sent
        self._options = options
        self._lock = threading.Lock()
        self._client: _Client | None = None
        self._stop: weakref.finalize[Any, Any] | None = None
        own = weakref.WeakMethod(self._forget)
        os.register_at_fork(after_in_child=lambda: None if (forget := own()) is None else forget())

    def put(self, key: str, data: bytes) -> None:
        """See `Objects.put`."""
        self._call("put", {"key": key}, data, CALL_S)

    def get(self, key: str, size: int) -> bytes:
        """See `Objects.get`."""
        return self._call("get", {"key": key, "size": size}, b"", CALL_S)[1]

    def days(self) -> list[date]:
        """See `Objects.days`."""
        return [date.fromisoformat(day) for day in self._call("days", {}, b"", LIST_S)[0]]

    def remove_day(self, day: date) -> int:
        """See `Objects.remove_day`."""
        return int(self._call("remove_day", {"day": day.isoformat()}, b"", REMOVE_S)[0])

    def check(self) -> None:
        """See `Objects.check`."""
        self._call("check", {}, b"", CALL_S)

    def _call(self, name: str, arguments: Mapping[str, Any], data: bytes, seconds: float) -> tuple[Any, bytes]:
        """Make one call in the process.

        Raises:
            NotFound, Unavailable, ConfigurationError: as the bucket raises them; Unavailable also if the process ends
                or does not answer in time.
        """
        with self._lock:
            if self._client is None or self._client.ended:
                if self._stop is not None:
                    self._stop.detach()
                self._client = _Client(self._options)
                self._stop = weakref.finalize(self, self._client.stop)
            client = self._client
        return client.call(name, arguments, data, seconds)

    def _forget(self) -> None:
        """Leave the process to the one that was forked from; another thread may have held the lock at that moment."""
        if self._stop is not None and self._client is not None:
            self._stop.detach()
            self._client.connection.close()
        self._lock, self._client, self._stop = threading.Lock(), None, None


@dataclass
class _Client:
    """A running process with the calls that wait for its answers."""

    options: LogStorageOptions
    ended: bool = False
    waiting: dict[int, Future[tuple[Any, bytes]]] = field(default_factory=dict)
    unsent: SimpleQueue[tuple[Mapping[str, Any], bytes] | None] = field(default_factory=SimpleQueue)  # None: the end
    lock: threading.Lock = field(default_factory=threading.Lock)
    calls: int = 0

    def __post_init__(self) -> None:
        self.connection, theirs = Pipe()
        command = [sys.executable, "-m", __name__, str(theirs.fileno())]
        command += [self.options.url, *(["--allow-http"] if self.options.allow_http else [])]
        try:
            self.process = subprocess.Popen(  # noqa: S603 - this program itself
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(one for one in sys.path if one),
                    "TOKIO_WORKER_THREADS": str(CLIENT_THREADS),
                },
            )
        except OSError as error:
            raise Unavailable(f"the client of the log storage could not be started: {error.strerror}") from None
        finally:
            theirs.close()
        self.sending = threading.Thread(target=self._send_calls, name="log-storage-calls", daemon=True)
        self.sending.start()
        threading.Thread(target=self._receive, name="log-storage-answers", daemon=True).start()

    def call(self, name: str, arguments: Mapping[str, Any], data: bytes, seconds: float) -> tuple[Any, bytes]:
        """See `IsolatedBucket._call`."""
        answer: Future[tuple[Any, bytes]] = Future()
        with self.lock:
            if self.ended:
                raise Unavailable(self._gone())
            self.calls += 1
            number = self.calls
            self.waiting[number] = answer
            self.unsent.put(({"call": number, "name": name, **arguments}, data))
        try:
            return answer.result(seconds)
        except TimeoutError:
            with self.lock:
                self.ended = True
            self.process.kill()
            raise Unavailable(f"the log storage did not answer within {seconds:.0f} s") from None
        finally:
            self.waiting.pop(number, None)

    def stop(self) -> None:
        """End the process."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _send_calls(self) -> None:
        """Send calls until the process has ended; where it takes nothing, only this thread waits for it."""
        with suppress(OSError):  # it has ended: the receiving thread sees that too
            while (call := self.unsent.get()) is not None:
                _send(self.connection, *call)

    def _receive(self) -> None:
        """Hand out answers until the process has ended."""
        with suppress(EOFError, OSError):
            while True:
                answer, data = _receive(self.connection)
                waiting = self.waiting.pop(answer["call"], None)
                if waiting is None:
                    continue
                if answer["error"] is None:
                    waiting.set_result((answer["result"], data))
                else:
                    waiting.set_exception(_ERRORS.get(answer["error"], Unavailable)(answer["detail"]))
        self.process.wait()
        with self.lock:
            self.ended = True
            left, self.waiting = self.waiting, {}
        self.unsent.put(None)
        self.sending.join()
        self.connection.close()
        for one in left.values():
            one.set_exception(Unavailable(self._gone()))

    def _gone(self) -> str:
        code = self.process.returncode
        return f"the client of the log storage ended (exit code {code}), which an answer of the storage may cause"


def _send(connection: Connection, head: Mapping[str, Any], data: bytes) -> None:
    connection.send_bytes(json.dumps(head).encode())
    connection.send_bytes(data)


def _receive(connection: Connection) -> tuple[dict[str, Any], bytes]:
    head: dict[str, Any] = json.loads(connection.recv_bytes())
    return head, connection.recv_bytes()


def main(arguments: list[str]) -> None:
    """Answer calls until the other end is closed. The arguments: the number of the connection, then the options."""
    for one in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group; the caller still needs answers
        signal.signal(one, signal.SIG_IGN)
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = MEMORY_BYTES if most == resource.RLIM_INFINITY else min(MEMORY_BYTES, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.stack_size(STACK_BYTES)
    with suppress(OSError):  # where memory is short, this process ends first
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    connection = Connection(int(arguments[0]))
    objects = BucketObjects(LogStorageOptions(arguments[1], "--allow-http" in arguments[2:]))
    lock = threading.Lock()

    def answer(request: Mapping[str, Any], content: bytes) -> None:
        head = {"call": request["call"], "error": None, "result": None, "detail": ""}
        data = b""
        try:
            head["result"], data = _made(objects, request, content)
        except FaultlineError as error:
            head |= {"error": type(error).__name__, "detail": error.detail}
        except Exception as error:  # noqa: BLE001 - the caller waits for an answer
            head |= {"error": Unavailable.__name__, "detail": f"the client of the log storage: {type(error).__name__}"}
        with lock, suppress(OSError):
            _send(connection, head, data)

    pool = ThreadPoolExecutor(PARALLEL)
    with suppress(EOFError, OSError):
        while True:
            pool.submit(answer, *_receive(connection))
    os._exit(0)  # nobody waits for the calls that still run


def _made(objects: BucketObjects, request: Mapping[str, Any], content: bytes) -> tuple[Any, bytes]:
    """Make one call; return its result as JSON and as bytes."""
    match request["name"]:
        case "put":
            objects.put(request["key"], content)
        case "get":
            return None, objects.get(request["key"], request["size"])
        case "days":
            return [one.isoformat() for one in objects.days()], b""
        case "remove_day":
            return objects.remove_day(date.fromisoformat(request["day"])), b""
        case "check":
            objects.check()
    return None, b""


if __name__ == "__main__":
    main(sys.argv[1:])
