"""Rank x time strip: which rank failed first, and when the others followed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from classifiers.contracts import LogStream
from service.failures.records import FailureDetail
from service.web.pages.failure.timeline import LAST_LINES, log_time

WIDTH, LEFT = 1000, 90  # in chart units
TALLEST_ROW, LOWEST_ROW, TALLEST = 18.0, 1.5, 420.0
LABELS = 12  # ranks whose number is written beside the chart
LABEL_ROOM = 14.0  # in chart units, between two labels
MOST_RANKS = 512
_ORDER = {"initiating": 0, "cascade": 1, "teardown": 2}


@dataclass(frozen=True, slots=True)
class RankMark:
    """The first evidence line of a rank, or its last line if it has none.

    `role`: of the evidence, else None; `after_s`: seconds after the first mark, None if the line has no time; `x` and
    `y` in chart units; `stream`: the position of the rank's log among those of the attempt, None without one.
    """

    rank: int
    node: str | None
    role: str | None
    what: str
    at: datetime | None
    after_s: float | None = None
    x: float = 0.0
    y: float = 0.0
    stream: int | None = None

    @property
    def rank_order(self) -> tuple[int, float, int]:
        """The place in the table: by role, then by time, then by rank."""
        return (_ORDER.get(self.role or "", len(_ORDER)), self.after_s or 0.0, self.rank)


@dataclass(frozen=True, slots=True)
class RankStrip:
    """The marks by rank. `labels`: rank numbers with their heights; `left_out`: ranks beyond the limit.

    `span_s`: seconds from the first to the last mark; 0 if the times cannot be compared, or are not known of a rank
    that failed first: the marks then stand in columns by role. `first`: the marks of the ranks that failed first.
    `affected`: how many others failed because of them. `untimed`: ranks without a time, which a chart of times leaves
    out.
    """

    marks: tuple[RankMark, ...]
    labels: tuple[tuple[int, float], ...]
    span_s: float
    height: float
    left_out: int
    first: tuple[RankMark, ...] = ()
    affected: int = 0
    untimed: int = 0


def rank_strip(detail: FailureDetail) -> RankStrip | None:
    """The strip of a failure; None with fewer than two ranks, or if no evidence names a rank."""
    streams = detail.logs[0].streams if detail.logs else ()
    found = _of_evidence((detail.verdict or {}).get("evidence") or (), detail.row.ended_at)
    if not found:
        return None
    by_rank = _by_rank(streams)
    for rank, (_, stream) in by_rank.items():
        if rank not in found:
            found[rank] = _last_line(rank, stream, detail.row.ended_at)
    if len(found) < 2:  # noqa: PLR2004 - one rank has nobody to spread to
        return None
    marks = [replace(found[rank], stream=by_rank.get(rank, (None,))[0]) for rank in sorted(found)]
    strip = _drawn(marks[:MOST_RANKS], max(0, len(marks) - MOST_RANKS))
    return replace(strip, affected=_affected(marks, detail.verdict or {}))


def _affected(marks: Sequence[RankMark], verdict: Mapping[str, Any]) -> int:
    """How many ranks failed because of the first: the sequence of events knows more than the evidence shows."""
    steps = (step for step in verdict.get("chain") or () if step.get("kind") == "consequence")
    return max(sum(1 for mark in marks if mark.role == "cascade"), *(step.get("ranks") or 0 for step in steps), 0)


def _of_evidence(evidence: Sequence[Mapping[str, Any]], ended: datetime) -> dict[int, RankMark]:
    """The most telling evidence line of each rank: by role, then by time."""
    found: dict[int, RankMark] = {}
    for line in evidence:
        rank, role = line.get("rank"), line.get("role")
        if rank is None or role not in _ORDER or line.get("note"):
            continue
        text = str(line.get("text") or "")
        mark = RankMark(rank, line.get("node"), role, text[:200], log_time(text, ended))
        if rank not in found or _order(mark) < _order(found[rank]):
            found[rank] = mark
    return found


def _order(mark: RankMark) -> tuple[int, bool, float]:
    return (_ORDER[mark.role or "teardown"], mark.at is None, 0.0 if mark.at is None else mark.at.timestamp())


def _by_rank(streams: Sequence[LogStream]) -> dict[int, tuple[int, LogStream]]:
    """One stream of each rank that wrote something, with its position."""
    found: dict[int, tuple[int, LogStream]] = {}
    for number, stream in enumerate(streams):
        if stream.rank is not None and stream.text.strip():
            found.setdefault(stream.rank, (number, stream))
    return found


def _last_line(rank: int, stream: LogStream, ended: datetime) -> RankMark:
    """The last line with a time, else the last line."""
    lines = stream.text.rstrip("\n").rsplit("\n", LAST_LINES)[-LAST_LINES:]
    for text in reversed(lines):
        at = log_time(text, ended)
        if at is not None:
            return RankMark(rank, stream.node, None, text[:200], at)
    return RankMark(rank, stream.node, None, lines[-1][:200], None)


def _drawn(marks: Sequence[RankMark], left_out: int) -> RankStrip:
    """Lay out the marks: time from left to right, one row for each rank."""
    timed = [mark.at for mark in marks if mark.at is not None]
    # A chart of times without the rank that failed first would hide what it is for.
    known = all(mark.at is not None for mark in marks if mark.role == "initiating")
    begin = min(timed, default=None) if known else None
    span = 0.0 if begin is None else (max(timed) - begin).total_seconds()
    row = max(LOWEST_ROW, min(TALLEST_ROW, TALLEST / len(marks)))
    placed = []
    for number, mark in enumerate(marks):
        after = None if begin is None or mark.at is None else (mark.at - begin).total_seconds()
        share = (after or 0.0) / span if span else _ORDER.get(mark.role or "", len(_ORDER)) / len(_ORDER)
        x, y = LEFT + 12 + share * (WIDTH - LEFT - 24), row * (number + 0.5)
        placed.append(replace(mark, after_s=after, x=round(x, 1), y=round(y, 1)))
    every = max(1, -(-len(placed) // LABELS))
    first = [mark for mark in placed if mark.role == "initiating"]
    return RankStrip(
        tuple(placed),
        _labels(placed, first, every),
        span,
        round(row * len(placed) + 2, 1),
        left_out,
        tuple(first),
        untimed=len(placed) - len(timed) if span > 0 else 0,
    )


def _labels(placed: Sequence[RankMark], first: Sequence[RankMark], every: int) -> tuple[tuple[int, float], ...]:
    """The ranks that failed first, and every so many others that leave them room."""
    named = first[:LABELS]
    others = [mark for mark in placed[::every] if all(abs(mark.y - one.y) >= LABEL_ROOM for one in named)]
    return tuple((mark.rank, mark.y) for mark in sorted((*named, *others), key=lambda mark: mark.y))
