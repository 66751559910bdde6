"""GET /failures/{id}/logs/{attempt}/{index}/lines: one log stream, page by page, with links to lines and a search."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse
from markupsafe import escape

from classifiers.contracts import LogStream
from service.errors import FieldError, NotFound
from service.failures.records import AttemptLogs, FailureDetail
from service.formatting import escape_invisible, strip_colour, truncate
from service.web import views
from service.web.auth import OWN
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
Id = Annotated[int, Path(ge=1, le=views.LONGEST_ID)]


@dataclass(frozen=True, slots=True)
class LogPage:
    """One page of a stream. `first`: position of its first line, from 1; `evidence`: (line, role) of the whole stream.

    `found`: lines that contain the search text, the first of `matches`; `earlier` and `later`: the first lines of the
    pages before and after. If the number of any line in the file is unknown, lines are numbered by their position.
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
        context = {
            "row": detail.row,
            "stream": stream_of(logs, index),
            "log": log_page(detail, logs, index, line, (q or "").strip()),
            "address": f"/failures/{failure_id}/logs/{attempt_id}/{index}",
            "line": line,
            "q": (q or "").strip(),
            "wrap": None if wrap != "no" else "no",
        }
        return render(request, "failure/log_viewer.html", context, services=snapshot)


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


def log_page(detail: FailureDetail, logs: AttemptLogs, index: int, line: int | None, q: str) -> LogPage:
    """The lines around a line number (the first page without one), and the search results."""
    stream = stream_of(logs, index)
    lines = numbered(stream)
    numbers = [number for number, _ in lines if number is not None]
    if len(numbers) < len(lines):
        numbers = list(range(1, len(lines) + 1))
    roles = roles_by_position(stream, lines, (detail.verdict or {}).get("evidence") or ())
    wanted = 0 if line is None else next((at for at, number in enumerate(numbers) if number >= line), len(lines) - 1)
    starts = page_starts(lines, max(0, wanted) // PAGE * PAGE)
    begin = max(start for start in starts if start <= max(0, wanted))
    end = min([start for start in starts if start > begin] or [starts[0] + PAGE])
    before = [start for start in starts if start < begin] or (page_starts(lines, begin - PAGE) if begin else [])
    matching = [at for at, (_, text) in enumerate(lines) if q.lower() in text.lower()] if q else []
    found = matching[: _fitting([lines[at][1][:FOUND_LONGEST] for at in matching[:FOUND]], FOUND_BYTES)]

    def shown(at: int) -> Line:
        return Line(numbers[at], truncate(lines[at][1], LONGEST), roles.get(at))

    return LogPage(
        tuple(shown(at) for at in range(begin, min(end, len(lines)))),
        begin + 1,
        len(lines),
        tuple((numbers[at], role) for at, role in sorted(roles.items()) if role != "context"),
        tuple(Line(numbers[at], lines[at][1], roles.get(at)) for at in found),
        len(matching),
        numbers[before[-1]] if before else None,
        numbers[end] if end < len(lines) else None,
    )


def page_starts(lines: Sequence[tuple[int | None, str]], first: int) -> list[int]:
    """Where pages begin among the 1,000 lines from position `first`: more than one position if the text is long."""
    texts = [text[:LONGEST] for _, text in lines[first : first + PAGE]]
    starts, done = [first], _fitting(texts, PAGE_BYTES)
    while done < len(texts):
        starts.append(first + done)
        done += _fitting(texts[done:], PAGE_BYTES)
    return starts


def _fitting(texts: Sequence[str], most: int) -> int:
    """How many of the first texts fit into so many bytes as they are sent, at least one."""
    room = most
    for count, text in enumerate(texts):
        room -= len(escape(escape_invisible(strip_colour(text))).encode())
        if room < 0:
            return max(count, 1)
    return len(texts)
