"""JSON lines from files, plain or gzipped, in bounded memory."""

import gzip
import hashlib
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO

from service.contracts.event import MAX_EVENT_BYTES
from service.errors import InvalidInput

STDIN = "-"
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Line:
    """One line that is not blank.

    `number` is 1-based. `size` (bytes) is of the whole line; where that is above `MAX_EVENT_BYTES`, `value` holds only
    its beginning and `sha256` the digest of the whole.
    """

    number: int
    value: bytes
    size: int
    sha256: str | None = None

    @property
    def too_long(self) -> bool:
        """Whether the line is longer than any event may be."""
        return self.size > MAX_EVENT_BYTES


def lines(name: str, limit: int = MAX_EVENT_BYTES) -> Iterator[Line]:
    """Yield the lines of a file, or of standard input for `-`.

    Raises:
        InvalidInput: the file can't be opened, or its gzip data is truncated; the lines before have been yielded.
    """
    with _opened(name) as source:
        number = 0
        while True:
            number += 1
            try:
                value = source.readline(limit + 1)
                if not value:
                    return
                if len(value) > limit and not value.endswith(b"\n"):
                    yield _long(source, number, value, limit)
                    continue
            except (EOFError, zlib.error, OSError) as error:
                raise InvalidInput(f"{name}: can't be read after line {number - 1}: {error}") from None
            text = value.strip()
            if text:
                yield Line(number, text, len(text))


def _long(source: IO[bytes], number: int, start: bytes, limit: int) -> Line:
    """Read a line longer than the limit to its end; only its digest and length are kept."""
    digest, size, part = hashlib.sha256(), 0, start
    while part:
        ended = part.endswith(b"\n")
        whole = part.rstrip(b"\r\n") if ended else part
        digest.update(whole)
        size += len(whole)
        if ended:
            break
        part = source.readline(limit)
    return Line(number, start[:limit], size, digest.hexdigest())


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    if name == STDIN:
        with _unzipped(sys.stdin.buffer) as source:
            yield source
        return
    try:
        with Path(name).open("rb") as raw, _unzipped(raw) as source:
            yield source
    except OSError as error:
        raise InvalidInput(f"{name}: {error.strerror or error}") from None


@contextmanager
def _unzipped(raw: IO[bytes]) -> Iterator[IO[bytes]]:
    """The content of a file or pipe; a pipe cannot be read again, so its beginning is only looked at."""
    if isinstance(raw, BufferedReader) and raw.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC):
        with gzip.open(raw) as unzipped:
            yield unzipped  # type: ignore[misc]  # GzipFile reads bytes by lines, which is all that is asked
    else:
        yield raw
