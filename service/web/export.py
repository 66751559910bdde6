"""The failures that fit, as CSV or JSON lines of a file, made while it is sent: memory does not grow with it."""

import csv
import io
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import orjson

from service.contracts.page import Page
from service.failures.records import FailureRow, FailureSort
from service.web import views
from service.web.services import Services
from service.web.url_times import instant
from service.web.views import FailureQuery

MAX_ROWS = 200_000  # rows of one export; what is older is had by `until`
_PAGE_SIZE = 500
COLUMNS = tuple(field.name for field in fields(FailureRow))
# What a spreadsheet would take for a formula (OWASP, "CSV Injection").
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def pages(services: Services, filters: FailureQuery, sort: FailureSort) -> Iterator[Page[FailureRow]]:
    """Page after page. The first is read at once, so that what is wrong with the question is said before any byte.

    Raises:
        InvalidInput: as `views.failures`.
    """
    first = views.failures(services, _fixed(services, filters), limit=_PAGE_SIZE, sort=sort)
    return _following(services, _fixed(services, filters), sort, first)


def as_csv(parts: Iterator[Page[FailureRow]]) -> Iterator[bytes]:
    """RFC 4180 with a line of names; a value that a spreadsheet would reckon with begins with an apostrophe."""
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
    """One JSON array, an object a failure."""
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
    """The same with its times resolved: "24h" must not move while pages are read."""
    now, zone = services.clock.now(), services.zone
    times: dict[str, Any] = {
        name: instant(text, name, now, zone).isoformat().replace("+00:00", "Z")
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
        part = views.failures(services, filters, limit=_PAGE_SIZE, cursor=part.next_cursor, sort=sort)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value)
    text = " ".join(value) if isinstance(value, tuple) else str(value)
    text = text.replace("\0", "\ufffd")
    return f"'{text}" if text.startswith(_FORMULA) else text
