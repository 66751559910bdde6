"""Cuts a training run into the windows in which logs reach an operator: whole, tail, first error alone, one rank alone.

Deterministic: the same case gives the same windows. A window in which the first failing line no longer stands teaches
with less weight, since its truth can no longer be read from it.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from classifiers.contracts import LogStream, RawCase
from classifiers.data.labelled_cases import LabelledCase
from classifiers.extraction.line_headers import strip_colors

_BLIND: Final = 0.25
_AROUND: Final = 3


@dataclass(frozen=True, slots=True)
class Window:
    """A cut of a case with the weight (0..1) it has beside the whole run."""

    name: str
    raw: RawCase
    weight: float


def _without_words(raw: RawCase) -> RawCase:
    job = replace(raw.job, exit_code=None, signal=None, reason=None, message=None, scheduler=None, gpus=None, nodes=())
    return replace(raw, job=job)


def _line_of(raw: RawCase, root: str) -> tuple[int, int] | None:
    """Stream and offset of the first failing line."""
    core = root.strip()[:200]
    for index, stream in enumerate(raw.streams):
        at = strip_colors(stream.text).find(core)
        if at >= 0:
            return index, at
    return None


def _only(stream: LogStream, text: str) -> tuple[LogStream, ...]:
    return (replace(stream, text=text, windows=(), first_line=None),)


def cut(case: LabelledCase, *, most: int = 5) -> Iterator[Window]:
    """The whole case first, then at most `most` - 1 windows of it."""
    raw = case.raw
    yield Window("whole", raw, 1.0)
    seed = zlib.crc32(case.id.encode())
    made: list[Window] = []
    lines = sum(stream.text.count("\n") + 1 for stream in raw.streams if stream.text)
    bare = _without_words(raw)
    if bare != raw:
        made.append(Window("without words of the scheduler", bare, 0.7 if lines > 1 else 0.3))
    root = case.labels.root_line
    place = _line_of(raw, root) if root else None
    if place is not None and lines > _AROUND:
        index, at = place
        stream = raw.streams[index]
        text = strip_colors(stream.text)
        begin = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        base = bare if seed & 1 else raw
        made.append(
            Window("first error alone", replace(base, streams=_only(stream, text[begin:end]), node_events=()), 0.9)
        )
        before = "\n".join(text[:begin].split("\n")[-_AROUND - 1 :])
        after = "\n".join(text[end:].split("\n")[: _AROUND + 1])
        near = before + text[begin:end] + after
        made.append(Window("around the first error", replace(raw, streams=_only(stream, near)), 0.7))
    elif lines > 12:  # noqa: PLR2004 - a shorter log is its own tail
        for stream in raw.streams[:1]:
            tail = "\n".join(stream.text.rstrip().split("\n")[-8:])
            made.append(Window("tail", replace(bare, streams=_only(stream, tail)), 0.5))
    if len(raw.streams) > 1:
        rank = case.labels.root_rank
        mine = [stream for stream in raw.streams if stream.rank == rank and stream.text.strip()]
        if mine and rank is not None:
            made.append(Window("one rank alone", replace(raw, streams=tuple(mine)), 0.8))
        launcher = [stream for stream in raw.streams if stream.rank is None and stream.text.strip()]
        if launcher and rank is not None:
            made.append(Window("launcher alone", replace(raw, streams=tuple(launcher)), _BLIND))
    yield from made[: most - 1]
