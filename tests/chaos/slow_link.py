"""A TCP proxy that passes bytes on as a long or bad link does: with delay, jitter, loss, stalls and resets.

Programs see a lost packet as bytes that come later, with all that follow, since TCP sends it again: so does this proxy.
"""

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

CHUNK = 65_536
IN_FLIGHT = 64  # chunks; then the sender has to wait, as it does where a link is full
# The least time after which Linux sends a lost packet again (TCP_RTO_MIN in include/net/tcp.h).
SENT_AGAIN_S = 0.2

Waiting = asyncio.Queue[tuple[float, bytes]]  # when a chunk is due by the loop's clock; no bytes: the end


@dataclass(frozen=True, slots=True)
class Condition:
    """How bad a link is: seconds in each direction, and the share of chunks that have to be sent again."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0


class SlowLink:
    """Passes connections to `port` on to `target_port`. All methods may be called from any thread."""

    def __init__(self, target_port: int, seed: int = 1) -> None:
        self.port = 0
        self._target_port = target_port
        self._rng = random.Random(seed)
        self._condition = Condition()
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="slow link", daemon=True)

    def start(self, port: int = 0) -> None:
        """Accept connections, on a free port by default."""

        async def listen() -> None:
            self._open.set()
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)
            self.port = self._server.sockets[0].getsockname()[1]

        self._thread.start()
        self._wait(listen())

    def close(self) -> None:
        """Abort all connections and stop."""

        async def end() -> None:
            if self._server is not None:
                self._server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.sleep(0)  # the loop closes aborted connections in its next turn

        self._wait(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def set(self, condition: Condition) -> None:
        """Change how long chunks take that arrive from now on."""
        self._condition = condition

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Pass nothing on during the `with` block; connections stay open, and nothing is lost."""
        self._call(self._open.clear)
        try:
            yield
        finally:
            self._call(self._open.set)

    def reset(self) -> None:
        """Abort every connection; what is on its way is lost."""
        self._call(self._abort)

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    def _call(self, act: Callable[[], object]) -> None:
        async def acted() -> None:
            act()

        self._wait(acted())

    def _wait(self, what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(10)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            there = await asyncio.open_connection("127.0.0.1", self._target_port)
            ends.append(there[1])
            self._writers.update(ends)
            async with asyncio.TaskGroup() as tasks:
                for source, target in ((reader, there[1]), (there[0], writer)):
                    waiting = Waiting(IN_FLIGHT)
                    tasks.create_task(self._receive(source, waiting))
                    tasks.create_task(self._deliver(waiting, target))
        except* OSError:  # one side has gone, or nobody listens: the other sees its connection end
            pass
        finally:
            self._writers.difference_update(ends)
            for end in ends:
                end.transport.abort()

    async def _receive(self, source: asyncio.StreamReader, waiting: Waiting) -> None:
        due, data = 0.0, b"-"
        while data:
            data = await source.read(CHUNK)
            now = self._condition
            again_s = SENT_AGAIN_S if self._rng.random() < now.loss else 0.0
            takes_s = max(0.0, now.delay_s + self._rng.uniform(-now.jitter_s, now.jitter_s)) + again_s
            due = max(due, self._loop.time() + takes_s)  # bytes never overtake others
            await waiting.put((due, data))

    async def _deliver(self, waiting: Waiting, target: asyncio.StreamWriter) -> None:
        data = b"-"
        while data:
            due, data = await waiting.get()
            await asyncio.sleep(due - self._loop.time())
            await self._open.wait()
            target.write(data)
            await target.drain()
        with suppress(OSError):
            target.write_eof()


@contextmanager
def slow_link(target_port: int, *, port: int = 0, seed: int = 1) -> Iterator[SlowLink]:
    """Yield a proxy before a port of this machine."""
    link = SlowLink(target_port, seed)
    link.start(port)
    try:
        yield link
    finally:
        link.close()
