"""Views of a training case: the parts of its logs that may reach the service.

A job's whole log, its tail, the first error alone, one rank alone. Deterministic: the same case gives the same views. A
view without the first failing line has less weight, since its labels can no longer be read from it.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from classifiers.contracts import LogStream, RawCase
from classifiers.data.labelled_cases import LabelledCase
from classifiers.extraction.line_headers import strip_colors

WHOLE: Final = "whole"
FIRST_ERROR: Final = "first error alone"
# Judgement: weights of the views relative to the whole case, and their sizes in lines.
_WITHOUT_FACTS_WEIGHT: Final = 0.7
_WITHOUT_FACTS_ONE_LINE_WEIGHT: Final = 0.3
_FIRST_ERROR_WEIGHT: Final = 0.9
_AROUND_ERROR_WEIGHT: Final = 0.7
_TAIL_WEIGHT: Final = 0.5
_ONE_RANK_WEIGHT: Final = 0.8
_LAUNCHER_WEIGHT: Final = 0.25
_LINES_AROUND_ERROR: Final = 3
_SHORT_LOG_LINES: Final = 12
_TAIL_LINES: Final = 8


@dataclass(frozen=True, slots=True)
class CaseView:
    """A part of a case with its weight (0..1) relative to the whole case."""

    name: str
    raw: RawCase
    weight: float


def views_of(case: LabelledCase, *, limit: int = 5) -> Iterator[CaseView]:
    """The whole case first, then at most `limit` - 1 parts of it."""
    raw = case.raw
    yield CaseView(WHOLE, raw, 1.0)
    without_facts = _without_scheduler_facts(raw)
    lines = sum(stream.text.count("\n") + 1 for stream in raw.streams if stream.text)
    found: list[CaseView] = []
    if without_facts != raw:
        weight = _WITHOUT_FACTS_WEIGHT if lines > 1 else _WITHOUT_FACTS_ONE_LINE_WEIGHT
        found.append(CaseView("without scheduler facts", without_facts, weight))
    root = case.labels.root_line
    place = _place_of(raw, root) if root else None
    if place is not None and lines > _LINES_AROUND_ERROR:
        found += _error_views(case, without_facts, *place)
    elif lines > _SHORT_LOG_LINES:
        found += _tail_views(without_facts)
    if len(raw.streams) > 1 and case.labels.root_rank is not None:
        found += _stream_views(raw, case.labels.root_rank)
    yield from found[: limit - 1]


def _error_views(case: LabelledCase, without_facts: RawCase, index: int, offset: int) -> list[CaseView]:
    """The first failing line alone, for every second case without the scheduler's facts, and with its surroundings."""
    raw, stream = case.raw, case.raw.streams[index]
    text = strip_colors(stream.text)
    begin = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    base = without_facts if zlib.crc32(case.id.encode()) & 1 else raw
    before = "\n".join(text[:begin].split("\n")[-_LINES_AROUND_ERROR - 1 :])
    after = "\n".join(text[end:].split("\n")[: _LINES_AROUND_ERROR + 1])
    around = before + text[begin:end] + after
    alone = replace(base, streams=_one_stream(stream, text[begin:end]), node_events=())
    return [
        CaseView(FIRST_ERROR, alone, _FIRST_ERROR_WEIGHT),
        CaseView("around the first error", replace(raw, streams=_one_stream(stream, around)), _AROUND_ERROR_WEIGHT),
    ]


def _tail_views(raw: RawCase) -> list[CaseView]:
    return [
        CaseView(
            "tail",
            replace(raw, streams=_one_stream(stream, "\n".join(stream.text.rstrip().split("\n")[-_TAIL_LINES:]))),
            _TAIL_WEIGHT,
        )
        for stream in raw.streams[:1]
    ]


def _stream_views(raw: RawCase, root_rank: int) -> list[CaseView]:
    """The streams of the rank that failed first, and those of the launcher."""
    found = []
    own = tuple(stream for stream in raw.streams if stream.rank == root_rank and stream.text.strip())
    if own:
        found.append(CaseView("one rank alone", replace(raw, streams=own), _ONE_RANK_WEIGHT))
    launcher = tuple(stream for stream in raw.streams if stream.rank is None and stream.text.strip())
    if launcher:
        found.append(CaseView("launcher alone", replace(raw, streams=launcher), _LAUNCHER_WEIGHT))
    return found


def _without_scheduler_facts(raw: RawCase) -> RawCase:
    job = replace(raw.job, exit_code=None, signal=None, reason=None, message=None, scheduler=None, gpus=None, nodes=())
    return replace(raw, job=job)


def _place_of(raw: RawCase, line: str) -> tuple[int, int] | None:
    """Stream and offset of the first failing line."""
    start = line.strip()[:200]
    for index, stream in enumerate(raw.streams):
        offset = strip_colors(stream.text).find(start)
        if offset >= 0:
            return index, offset
    return None


def _one_stream(stream: LogStream, text: str) -> tuple[LogStream, ...]:
    return (replace(stream, text=text, windows=(), first_line=None),)
