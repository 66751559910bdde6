"""Log excerpts on the failure page: evidence lines with context, and the end; other lines are counted."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from classifiers.contracts import LogStream

CONTEXT_LINES = 3  # lines before and after an evidence line
END = 6  # last lines of a stream
STREAMS = 32  # streams with an excerpt


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number in the stream (None: unknown), its text, and its role if it is evidence."""

    number: int | None
    text: str
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """Lines left out."""

    lines: int


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The excerpt of one stream. `index` is its position among the streams of the attempt."""

    attempt_id: int
    index: int
    stream: LogStream
    lines: int
    rows: tuple[Line | Gap, ...]
    has_evidence: bool
    begins: bool


def numbered(stream: LogStream) -> list[tuple[int | None, str]]:
    """The lines of a stream with their line numbers in the file; each window has its own first number."""
    windows = sorted(stream.windows) or [(0, stream.first_line)]
    lines: list[tuple[int | None, str]] = []
    number, offset, following = stream.first_line, 0, 0
    for text in stream.text.split("\n"):
        while following < len(windows) and windows[following][0] <= offset:
            number = windows[following][1]
            following += 1
        lines.append((number, text))
        offset += len(text) + 1
        number = None if number is None else number + 1
    if lines and not lines[-1][1]:
        lines.pop()
    return lines


def roles_by_position(
    stream: LogStream, lines: Sequence[tuple[int | None, str]], evidence: Sequence[Mapping[str, Any]]
) -> dict[int, str]:
    """The roles of the evidence lines of a stream, by their position in `lines`."""
    texts = dict(lines)
    matching = [
        found
        for found in evidence
        if (found.get("rank"), found.get("node"), found.get("stream")) == (stream.rank, stream.node, stream.stream)
        # Evidence without a rank belongs to this stream if the line with its number has the same text.
        or (
            found.get("rank") is None
            and (found.get("node"), found.get("stream")) == (stream.node, stream.stream)
            and texts.get(found.get("line"), "").strip() == str(found.get("text")).strip() != ""
        )
    ]
    by_number = {found["line"]: found["role"] for found in matching if found.get("line") is not None}
    by_text = {found["text"].strip(): found["role"] for found in matching if found.get("line") is None}
    roles: dict[int, str] = {}
    for position, (number, text) in enumerate(lines):
        role = by_number.get(number) if number is not None else None
        role = role or by_text.get(text.strip())
        if role is not None:
            roles[position] = role
    return roles


def excerpt(
    stream: LogStream, evidence: Sequence[Mapping[str, Any]], *, attempt_id: int = 0, index: int = 0, end: int = END
) -> Excerpt:
    """The excerpt of a stream; `evidence` as in verdict/1, of all streams."""
    lines = numbered(stream)
    roles = roles_by_position(stream, lines, evidence)
    wanted = {near for at in roles for near in range(at - CONTEXT_LINES, at + CONTEXT_LINES + 1)}
    wanted |= set(range(len(lines) - end, len(lines)))
    rows: list[Line | Gap] = []
    last = -1
    for position in sorted(place for place in wanted if 0 <= place < len(lines)):
        if position > last + 1:
            rows.append(Gap(position - last - 1))
        number, text = lines[position]
        rows.append(Line(number, text, roles.get(position)))
        last = position
    begins = "initiating" in roles.values()
    return Excerpt(attempt_id, index, stream, len(lines), tuple(rows), bool(roles), begins)


def code_of_frame(frame: str | None, shown: Sequence[Excerpt]) -> str | None:
    """The line of code that a traceback of Python shows below a frame such as `train.py:97`; None if none is there."""
    name, _, number = (frame or "").rpartition(":")
    if not name or not number.isdigit():
        return None
    # A path, and only a whole name of a file: the frame of `retrain.py` is another one.
    where = re.compile(rf'\bFile "(?:[^"]*[/\\])?{re.escape(name)}", line {number}\b')
    for rows in (one.rows for one in shown if one.begins):
        for row, following in pairwise(rows):
            if isinstance(row, Line) and isinstance(following, Line) and where.search(row.text):
                return following.text.strip() if following.text.startswith("    ") else None
    return None


def excerpts(
    logs: Sequence[tuple[int, Sequence[LogStream]]], evidence: Sequence[Mapping[str, Any]], *, end: int = END
) -> tuple[list[Excerpt], int]:
    """The excerpts, streams with the first error first, then those with evidence; and the number of omitted streams."""
    found = [
        excerpt(stream, evidence, attempt_id=attempt_id, index=index, end=end)
        for attempt_id, streams in logs
        for index, stream in enumerate(streams)
    ]
    found.sort(key=lambda one: (not one.begins, not one.has_evidence))
    return found[:STREAMS], max(0, len(found) - STREAMS)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the log viewer shows a line, and the rank of its stream."""

    address: str
    rank: int | None


def places_of(failure_id: int, shown: Sequence[Excerpt]) -> Callable[[Mapping[str, Any]], Place | None]:
    """The place of a line of the evidence; None for evidence that is in no log of the page."""
    found: dict[tuple[object, ...], Place] = {}
    for one in shown:
        viewer = f"/failures/{failure_id}/logs/{one.attempt_id}/{one.index}/lines"
        for row in one.rows:
            if isinstance(row, Line) and row.role is not None and row.number is not None:
                place = Place(f"{viewer}?line={row.number}#L{row.number}", one.stream.rank)
                where = (one.stream.node, one.stream.stream, row.number, row.role)
                found.setdefault((one.stream.rank, *where), place)
                found.setdefault((None, *where, row.text.strip()), place)

    def of_line(line: Mapping[str, Any]) -> Place | None:
        where = tuple(line.get(name) for name in ("node", "stream", "line", "role"))
        place = found.get((line.get("rank"), *where))
        if place is None and line.get("rank") is None:  # as roles_by_position finds it
            place = found.get((None, *where, str(line.get("text")).strip()))
        return place

    return of_line
