"""Streamed export of matching failures as CSV or JSON; memory use does not grow with the number of rows.

A client can always tell a whole file from a part of one.
"""

import csv
import io
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields, replace
from typing import IO, Any

import orjson
from anyio import to_thread
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from service.contracts.page import Page
from service.failures.records import FailureRow, FailureSort
from service.formatting import escape_invisible
from service.times import rfc3339
from service.web import views
from service.web.services import Services
from service.web.url_times import instant
from service.web.views import FailureQuery

MAX_ROWS = 200_000  # rows of one export; use `until` for older rows
_PAGE_SIZE = 500
COLUMNS = tuple(field.name for field in fields(FailureRow))
# First characters of spreadsheet formulas (OWASP, "CSV Injection"), at the begin of a cell. Where a spreadsheet splits
# at semicolons or tabs, as with many European settings, a cell also begins after one of these.
_FORMULA = re.compile("(^[ \u200b\ufeff]*|[;\t\r\n][ \"']*)(?=[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20])")

_MEMORY_BYTES = 8 << 20  # beyond this, what waits for its length is on the disk
_PORTION_BYTES = 1 << 20


class StreamedFile(StreamingResponse):
    """A file in portions.

    If making it fails half-way, the connection is closed. In HTTP/1.1 its last portion is then missing, which is an
    error to every client. HTTP/1.0 has no portions, and the end of the connection would look like the end of the file:
    its clients, such as nginx without `proxy_http_version 1.1`, get the file once it is complete, with its length.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file."""
        if scope.get("http_version") != "1.0":
            await super().__call__(scope, receive, send)
            return
        with tempfile.SpooledTemporaryFile(_MEMORY_BYTES) as file:
            async for portion in self.body_iterator:
                await to_thread.run_sync(file.write, portion.encode() if isinstance(portion, str) else portion)
            self.headers["content-length"] = str(file.tell())
            file.seek(0)
            self.body_iterator = _portions(file)
            await super().__call__(scope, receive, send)


def pages(services: Services, filters: FailureQuery, sort: FailureSort) -> Iterator[Page[FailureRow]]:
    """The matching failures in pages. The first page is read at once, so that invalid filters raise before any output.

    Raises:
        InvalidInput: as `views.failures`.
    """
    fixed = _fixed(services, filters)
    return _following(services, fixed, sort, _page(services, fixed, sort))


def as_csv(parts: Iterator[Page[FailureRow]]) -> Iterator[bytes]:
    """CSV (RFC 4180) with a header line. An apostrophe is put before values that look like spreadsheet formulas."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for part in parts:
        for row in part.items:
            writer.writerow([_cell(getattr(row, name)) for name in COLUMNS])
        yield out.getvalue().encode("utf-8", "replace")
        out.seek(0)
        out.truncate()


def as_json(parts: Iterator[Page[FailureRow]]) -> Iterator[bytes]:
    """One JSON array with one object per failure."""
    opened = False
    for part in parts:
        lines = [
            orjson.dumps({name: getattr(row, name) for name in COLUMNS}, option=orjson.OPT_UTC_Z, default=str)
            for row in part.items
        ]
        if lines:
            yield (b",\n" if opened else b"[\n") + b",\n".join(lines)
            opened = True
    yield b"\n]\n" if opened else b"[]\n"


def _fixed(services: Services, filters: FailureQuery) -> FailureQuery:
    """The query with resolved times: "24h" must not move between pages."""
    now, zone = services.clock.now(), services.zone
    times: dict[str, Any] = {
        name: rfc3339(instant(text, name, now, zone))
        for name in ("since", "until")
        if (text := getattr(filters, name)) is not None
    }
    return replace(filters, **times)


def _following(
    services: Services, filters: FailureQuery, sort: FailureSort, first: Page[FailureRow]
) -> Iterator[Page[FailureRow]]:
    part, sent = first, 0
    while True:
        yield part
        sent += len(part.items)
        if part.next_cursor is None or sent >= MAX_ROWS:
            return
        part = _page(services, filters, sort, part.next_cursor)


def _page(services: Services, filters: FailureQuery, sort: FailureSort, cursor: str | None = None) -> Page[FailureRow]:
    return views.failures(services, filters, limit=_PAGE_SIZE, cursor=cursor, sort=sort)


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value)
    text = " ".join(value) if isinstance(value, tuple) else str(value)
    return escape_invisible(_FORMULA.sub(r"\1'", text.replace("\0", "\ufffd")))


async def _portions(file: IO[bytes]) -> AsyncIterator[bytes]:
    while portion := await to_thread.run_sync(file.read, _PORTION_BYTES):
        yield portion
