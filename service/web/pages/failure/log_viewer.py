"""GET /failures/{id}/logs/{attempt}/{index}/lines: one log stream, page by page, with links to lines and a search.

Where scripts run, log.js scrolls through the whole stream, which it reads from `lines.json` beside the page.
"""

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import escape

from classifiers.contracts import LogStream
from service.errors import FieldError, NotFound
from service.failures.records import AttemptLogs, FailureDetail
from service.formatting import escape_invisible, strip_colour, truncate
from service.web import views
from service.web.api.parameters import Id
from service.web.auth import OWN
from service.web.pages import display_names
from service.web.pages.failure.log_excerpt import Line, numbered, roles_by_position
from service.web.pages.forms import Text
from service.web.pages.templating import render
from service.web.services import InjectedServices

router = APIRouter(dependencies=[OWN])
PAGE = 1_000  # lines of a page
# Pages are not compressed (static_files.py). With the rest of the page, this stays below 400 kB.
PAGE_BYTES = 128 * 1024  # of the text of a page's lines as it is sent; one line may be longer
FOUND = 200  # search results shown
FOUND_BYTES = 64 * 1024  # of their text as it is sent
FOUND_LONGEST = 400  # characters of a search result; the template cuts it
LONGEST = 4_000  # characters of a line
COMPRESSION = 5  # of gzip; six times smaller for usual lines, in a few milliseconds


@dataclass(frozen=True, slots=True)
class StreamLines:
    """The lines of a stream: their texts as stored, their numbers, and the roles of evidence by position, from 0.

    If the number of any line in the file is unknown, lines are numbered by their position, from 1.
    """

    texts: Sequence[str]
    numbers: Sequence[int]
    roles: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class LogPage:
    """One page of a stream. `first`: position of its first line, from 1; `evidence`: (line, role) of the whole stream.

    `found`: lines that contain the search text, the first of `matches`; `earlier` and `later`: the first lines of the
    pages before and after.
    """

    lines: tuple[Line, ...]
    first: int
    total: int
    evidence: tuple[tuple[int, str], ...]
    found: tuple[Line, ...]
    matches: int
    earlier: int | None
    later: int | None


@router.get("/failures/{failure_id}/logs/{attempt_id}/{index}/lines")
def log_lines(
    request: Request,
    services: InjectedServices,
    failure_id: Id,
    attempt_id: Id,
    index: Annotated[int, Path(ge=0, le=100_000)],
    line: Annotated[int | None, Query(ge=0)] = None,
    q: Text = None,
    wrap: Text = None,
) -> HTMLResponse:
    """The page of a log that shows a line.

    Raises:
        NotFound: no such stream.
    """
    with services.snapshot() as snapshot:
        detail = views.failure(snapshot, failure_id)
        logs = attempt_logs(detail, attempt_id, index)
        stream, search = stream_of(logs, index), (q or "").strip()
        context = {
            "row": detail.row,
            "stream": stream,
            "log": log_page(lines_of(detail, stream), line, search),
            "address": f"/failures/{failure_id}/logs/{attempt_id}/{index}",
            "line": line,
            "q": search,
            "wrap": None if wrap != "no" else "no",
        }
        return render(request, "failure/log_viewer.html", context, services=snapshot)


@router.get("/failures/{failure_id}/logs/{attempt_id}/{index}/lines.json")
def all_lines(
    request: Request,
    services: InjectedServices,
    failure_id: Id,
    attempt_id: Id,
    index: Annotated[int, Path(ge=0, le=100_000)],
) -> Response:
    """The whole stream for log.js, compressed. At most 288 KiB of a log are kept, so that one answer is enough.

    The answer has no secret of the service and repeats nothing of the request, so that its compressed size tells an
    attacker nothing (unlike a page with its form token).

    Raises:
        NotFound: no such stream.
    """
    detail = views.failure(services, failure_id)
    content = json.dumps(wire(lines_of(detail, stream_of(attempt_logs(detail, attempt_id, index), index)))).encode()
    headers = {"Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = gzip.compress(content, COMPRESSION), "gzip"
    return Response(content, media_type="application/json", headers=headers)


def wire(lines: StreamLines) -> dict[str, object]:
    """Lines as log.js reads them.

    `text`: all lines as pages show them, joined by line feeds; `numbers`: [position, number] where the numbers do not
    continue those before; `roles`: [position, role, glyph] of evidence lines.
    """
    runs = [[at, number] for at, number in enumerate(lines.numbers) if at == 0 or number != lines.numbers[at - 1] + 1]
    roles = [[at, role, display_names.word("role", role, "glyph")] for at, role in sorted(lines.roles.items())]
    return {"text": "\n".join(map(_shown, lines.texts)), "numbers": runs, "roles": roles}


def attempt_logs(detail: FailureDetail, attempt_id: int, index: int) -> AttemptLogs:
    """The logs of an attempt that have a stream of this index, or cannot be read at the moment.

    Raises:
        NotFound: no such stream.
    """
    for logs in detail.logs:
        if logs.attempt_id == attempt_id and (logs.unreadable or index < len(logs.streams)):
            return logs
    raise NotFound(f"no such log of failure {detail.row.id}", (FieldError("index", "a stream of this failure"),))


def stream_of(logs: AttemptLogs, index: int) -> LogStream:
    """The stream of this index; if the logs cannot be read, the one that says why."""
    return logs.streams[0 if logs.unreadable else index]


def lines_of(detail: FailureDetail, stream: LogStream) -> StreamLines:
    """The lines of one of the failure's streams."""
    lines = numbered(stream)
    numbers = [number for number, _ in lines if number is not None]
    if len(numbers) < len(lines):
        numbers = list(range(1, len(lines) + 1))
    roles = roles_by_position(stream, lines, (detail.verdict or {}).get("evidence") or ())
    return StreamLines([text for _, text in lines], numbers, roles)


def log_page(lines: StreamLines, line: int | None, q: str) -> LogPage:
    """The lines around a line number (the first page without one), and the search results."""
    texts, numbers, roles = lines.texts, lines.numbers, lines.roles
    wanted = 0 if line is None else next((at for at, number in enumerate(numbers) if number >= line), len(texts) - 1)
    starts = page_starts(texts, max(0, wanted) // PAGE * PAGE)
    begin = max(start for start in starts if start <= max(0, wanted))
    end = min([start for start in starts if start > begin] or [starts[0] + PAGE])
    before = [start for start in starts if start < begin] or (page_starts(texts, begin - PAGE) if begin else [])
    matching = [at for at, text in enumerate(texts) if q.lower() in text.lower()] if q else []
    found = matching[: _fitting((texts[at][:FOUND_LONGEST] for at in matching[:FOUND]), FOUND_BYTES)]

    def shown(at: int) -> Line:
        return Line(numbers[at], truncate(texts[at], LONGEST), roles.get(at))

    return LogPage(
        tuple(shown(at) for at in range(begin, min(end, len(texts)))),
        begin + 1,
        len(texts),
        tuple((numbers[at], role) for at, role in sorted(roles.items()) if role != "context"),
        tuple(Line(numbers[at], texts[at], roles.get(at)) for at in found),
        len(matching),
        numbers[before[-1]] if before else None,
        numbers[end] if end < len(texts) else None,
    )


def page_starts(texts: Sequence[str], first: int) -> list[int]:
    """Where pages begin among the 1,000 lines from position `first`: more than one position if the text is long."""
    shown = [text[:LONGEST] for text in texts[first : first + PAGE]]
    starts, done = [first], _fitting(shown, PAGE_BYTES)
    while done < len(shown):
        starts.append(first + done)
        done += _fitting(shown[done:], PAGE_BYTES)
    return starts


def _shown(text: str) -> str:
    """A line as pages show it: cut, without colours, and with invisible characters made visible."""
    return str(escape_invisible(strip_colour(truncate(text, LONGEST))))


def _fitting(texts: Iterable[str], most: int) -> int:
    """How many of the first texts fit into so many bytes as they are sent, at least one."""
    room, count = most, 0
    for count, text in enumerate(texts, 1):
        room -= len(escape(escape_invisible(strip_colour(text))).encode())
        if room < 0:
            return max(count - 1, 1)
    return count
