"""Timeline of ranks, node events and the scheduler, as a chart and a table."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from classifiers.contracts import LogStream
from classifiers.extraction.line_headers import time_of
from service.failures.records import FailureDetail
from service.times import instant_of

WIDTH, LANE, LEFT = 1000, 22, 150  # in chart units
MOST_LANES = 14
NODE_EVENTS = 12
LAST_LINES = 60  # last lines of a stream searched for a time stamp
_HALF_HOUR = timedelta(minutes=30)
_SLACK = timedelta(minutes=10)
_WIDEST_SHIFT = timedelta(hours=26)  # between two time zones: from UTC-12 to UTC+14
_YEAR = re.compile(r"(20\d\d)[-/]\d\d[-/]\d\d[T _]\d\d:\d\d")
_YEAR_RANGE = 120  # characters of a line that may hold its time


@dataclass(frozen=True, slots=True)
class Mark:
    """One event. `role`: of evidence, else None; `x` and `y` in chart units; `before`: left of the chart."""

    at: datetime
    lane: str
    what: str
    role: str | None = None
    x: float = 0.0
    y: float = 0.0
    before: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """The marks in order. `shifted_h`: hours by which log times were shifted to match the scheduler's clock."""

    marks: tuple[Mark, ...]
    lanes: tuple[tuple[str, float], ...]
    begin: datetime
    end: datetime
    height: int
    shifted_h: float


def timeline(detail: FailureDetail) -> Timeline | None:
    """The timeline of a failure; None if only its end is known."""
    row = detail.row
    logs = detail.logs[0] if detail.logs else None
    event: Mapping[str, Any] = logs.event if logs is not None else {}
    marks = [
        Mark(at, "scheduler", what)
        for name, what in (
            ("submitted_at", "submitted"),
            ("started_at", "started"),
            ("ended_at", f"ended: {row.status}"),
        )
        if (at := instant_of(event.get(name))) is not None
    ]
    point = event.get("checkpoint") or {}
    if (at := instant_of(point.get("at"))) is not None:
        step = f" at step {point['step']:,}" if isinstance(point.get("step"), int) else ""
        marks.append(Mark(at, "checkpoint", f"last checkpoint{step}"))
    marks.extend(
        Mark(at, f"node {line.get('node') or '?'}", str(line.get("text") or "")[:200])
        for line in (event.get("node_events") or ())[:NODE_EVENTS]
        if (at := instant_of(line.get("at"))) is not None
    )
    try:
        log_marks, hours = _of_logs(detail, logs.streams if logs is not None else ())
    except OverflowError:
        log_marks, hours = [], 0.0
    marks += log_marks
    if len(marks) < 2:  # noqa: PLR2004 - a single mark says nothing
        return None
    try:
        return _drawn(sorted(marks, key=lambda mark: mark.at), row.ended_at, hours)
    except OverflowError:  # a clock at the edge of the calendar: no chart
        return None


def _of_logs(detail: FailureDetail, streams: Sequence[LogStream]) -> tuple[list[Mark], float]:
    """Evidence lines with a time and the last line of each stream, shifted to the scheduler's clock."""
    row = detail.row
    found: list[tuple[datetime, str, str, str | None]] = []
    for line in (detail.verdict or {}).get("evidence") or ():
        at = log_time(str(line.get("text") or ""), row.ended_at)
        if at is not None and line.get("stream") not in {"node", "scheduler"}:
            found.append((at, _lane(line.get("rank"), line.get("stream")), str(line["text"])[:200], line.get("role")))
    for stream in streams[:MOST_LANES]:
        for text in reversed(stream.text.rstrip("\n").split("\n")[-LAST_LINES:]):
            at = log_time(text, row.ended_at)
            if at is not None:
                found.append((at, _lane(stream.rank, stream.stream), f"last line: {text[:160]}", None))
                break
    if not found:
        return [], 0.0
    last = max(at for at, *_ in found)
    begin = (row.started_at or row.ended_at) - _SLACK
    shift = timedelta()
    if not begin <= last <= row.ended_at + _SLACK:
        shift = round((row.ended_at - last) / _HALF_HOUR) * _HALF_HOUR
        if abs(shift) > _WIDEST_SHIFT:  # the log shows another day's clock: its times are not comparable
            return [], 0.0
        if not begin <= last + shift <= row.ended_at + _SLACK:
            return [], 0.0
    marks = [Mark(at + shift, lane, what, role) for at, lane, what, role in found]
    return marks, shift / timedelta(hours=1)


def _drawn(marks: Sequence[Mark], end: datetime, hours: float) -> Timeline:
    """Lay out the chart around the failure; much earlier events are placed at its left edge."""
    close = [mark.at for mark in marks if mark.role is not None or mark.lane.startswith("node ")]
    last = end
    first = min(min(close, default=marks[0].at), end)
    span = max(last - first, timedelta(seconds=20))
    begin = first - span * 0.2
    lanes: dict[str, float] = {}
    for mark in marks:
        if len(lanes) < MOST_LANES:
            lanes.setdefault(mark.lane, 0.0)
    ordered = sorted(lanes, key=lambda lane: (lane != "scheduler", lane != "checkpoint", not lane.startswith("node ")))
    lanes = {lane: LANE * (number + 0.7) for number, lane in enumerate(ordered)}
    whole = (last - begin) / timedelta(seconds=1)
    placed = []
    for mark in marks:
        share = min(1.0, (mark.at - begin) / timedelta(seconds=1) / whole)
        placed.append(
            Mark(
                mark.at,
                mark.lane,
                mark.what,
                mark.role,
                round(LEFT + 12 + max(0.0, share) * (WIDTH - LEFT - 24), 1),
                lanes.get(mark.lane, -100.0),
                before=share < 0,
            )
        )
    return Timeline(tuple(placed), tuple(lanes.items()), begin, last, LANE * len(lanes) + 6, hours)


def _lane(rank: int | None, stream: str | None) -> str:
    return f"rank {rank}" if rank is not None else str(stream or "log")


def log_time(text: str, ended: datetime) -> datetime | None:
    """The time of a log line; None if it has none, or names a year in which the job did not run."""
    named = _YEAR.search(text, 0, _YEAR_RANGE)
    at = _in_year(time_of(text), ended)
    return None if at is not None and named is not None and int(named[1]) != at.year else at


def _in_year(seconds: float | None, ended: datetime) -> datetime | None:
    if seconds is None:
        return None
    instant = datetime(2023, 12, 31, tzinfo=UTC) + timedelta(seconds=seconds)  # months are counted as in a leap year
    try:
        at = instant.replace(year=ended.year)
        if ended.month == 12 and at.month == 1:  # noqa: PLR2004 - December
            tomorrow = at.replace(year=ended.year + 1)
            return tomorrow if tomorrow - ended <= _WIDEST_SHIFT else at
        return at.replace(year=ended.year - 1) if at - ended > timedelta(days=180) else at
    except ValueError:
        return None
