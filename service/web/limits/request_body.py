"""Reading of request bodies with a size limit, also for chunked and compressed bodies."""

import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TypeVar, cast
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread
from fastapi import Request

from service.contracts.event import MAX_EVENT_BYTES
from service.errors import FaultlineError, FieldError, InvalidInput, TooLarge, Unavailable

_Answer = TypeVar("_Answer")
MAX_BYTES = MAX_EVENT_BYTES
# This much of an oversized body is still read and discarded, so that the client receives the error response.
# The request gate ends longer bodies.
_MAX_DRAINED_BYTES = 64 * 1024 * 1024
# All bodies that are in memory at one time; further large requests are asked to come back later.
MEMORY_BYTES = 128 * 1024 * 1024
# Concatenated gzip members are valid; the limit stops bodies made of millions of empty members.
_MAX_MEMBERS = 1_000


class UnsupportedEncoding(FaultlineError):
    """The content encoding of the body is not supported."""

    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    title = "Unsupported content encoding"
    is_logged = False


class BodyMemory:
    """Counts the bytes of all bodies in memory. For one event loop.

    One sender has half of them at most, so that slow bodies of one never keep those of all others from being read.
    """

    def __init__(self, limit: int = MEMORY_BYTES) -> None:
        self._limit = limit
        self._used: Counter[str] = Counter()

    def grow(self, size: int, sender: str) -> None:
        """Count further bytes.

        Raises:
            Unavailable: the bodies of all requests together, or of this sender, are too large.
        """
        if self._used[sender] + size > self._limit // 2:
            raise Unavailable("other large requests of yours are being read: send this one again in some seconds")
        if self._used.total() + size > self._limit:
            raise Unavailable("other large requests are being read: send this one again in some seconds")
        self._used[sender] += size

    def shrink(self, size: int, sender: str) -> None:
        """Release bytes."""
        self._used[sender] -= size
        self._used += Counter()  # forgets senders of whom nothing is in memory


@asynccontextmanager
async def body_of(request: Request) -> AsyncIterator[bytes]:
    """The whole body, decompressed, at most 16 MiB; it counts as memory of this process during the `async with` block.

    Raises:
        Unavailable: the bodies of all requests together are too large.
        TooLarge: the body is larger, compressed or decompressed.
        UnsupportedEncoding: a Content-Encoding other than gzip.
        InvalidInput: the gzip data is invalid.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", "", "gzip", "x-gzip"}:
        expected = "gzip or none"
        raise UnsupportedEncoding(
            f"Content-Encoding: expected {expected}", (FieldError("Content-Encoding", expected, encoding[:40]),)
        )
    memory = cast("BodyMemory", request.app.state.body_memory)
    body = bytearray()
    counted = _Counted(memory, sender_of(request))
    try:
        await _read(request, body, counted, _Gunzip() if encoding.endswith("gzip") else None)
        content = bytes(body)
        del body
        yield content
    finally:
        counted.release()


def sender_of(request: Request) -> str:
    """By whom bodies are counted: the caller that the request gate identified."""
    caller = getattr(request.state, "identified", None)
    return "" if caller is None else str(caller.sender)


class IntakeTurns:
    """Runs what handles bodies in few threads: others wait. For one event loop.

    One sender takes all threads but one, so that the bodies of another never wait for all of its own.
    """

    def __init__(self, threads: int) -> None:
        self._threads = CapacityLimiter(threads)
        self._threads_of_one = max(threads - 1, 1)
        self._senders: WeakValueDictionary[str, CapacityLimiter] = WeakValueDictionary()

    async def run(self, sender: str, handle: Callable[[], _Answer]) -> _Answer:
        """The result of `handle`, which runs in a thread when it is the sender's turn."""
        own = self._senders.get(sender)
        if own is None:
            own = self._senders[sender] = CapacityLimiter(self._threads_of_one)
        async with own:
            return await to_thread.run_sync(handle, limiter=self._threads)


class _Counted:
    """The bytes of one body in the count of all."""

    def __init__(self, memory: BodyMemory, sender: str) -> None:
        self._memory = memory
        self._sender = sender
        self._size = 0

    def set(self, size: int) -> None:
        if size > self._size:
            self._memory.grow(size - self._size, self._sender)
            self._size = size

    def release(self) -> None:
        self._memory.shrink(self._size, self._sender)
        self._size = 0


async def _read(request: Request, body: bytearray, counted: _Counted, gunzip: "_Gunzip | None") -> None:
    taken, too_large = 0, False
    async for chunk in request.stream():
        taken += len(chunk)
        if too_large:
            if taken > _MAX_DRAINED_BYTES:
                break
            continue
        body += chunk if gunzip is None else gunzip.feed(chunk, MAX_BYTES + 1 - len(body))
        counted.set(len(body))
        too_large = len(body) > MAX_BYTES or taken > MAX_BYTES
        if too_large:
            body.clear()
            counted.release()
    if too_large:
        expected = f"at most {MAX_BYTES} bytes"
        raise TooLarge(f"the body: expected {expected}", (FieldError("(body)", expected),))
    if gunzip is not None:
        gunzip.finish()


class _Gunzip:
    """Decompresses one or more gzip members incrementally, up to a given size."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self._started = False
        self._members = 1

    def feed(self, data: bytes, room: int) -> bytes:
        out = bytearray()
        try:
            while data and len(out) < room:
                if self._member.eof:
                    self._members += 1
                    if self._members > _MAX_MEMBERS:
                        raise _broken(f"gzip of at most {_MAX_MEMBERS} members")
                    self._member, self._started = zlib.decompressobj(wbits=31), False
                self._started = True
                out += self._member.decompress(data, room - len(out))
                data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        except zlib.error:
            raise _broken() from None
        return bytes(out)

    def finish(self) -> None:
        if not self._started or not self._member.eof:
            raise _broken()


def _broken(expected: str = "gzip") -> InvalidInput:
    return InvalidInput(
        f"the body: expected {expected}, as declared by its Content-Encoding", (FieldError("(body)", expected),)
    )
