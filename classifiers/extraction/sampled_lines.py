"""Lines near the beginning and end of each log, shown where little else was found, and which of them tell something."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from classifiers.extraction import benign_lines, training_progress
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.line_headers import parse_header
from classifiers.extraction.line_roles import is_source_code
from classifiers.extraction.line_shapes import is_overcome
from classifiers.extraction.onset import Onset
from classifiers.extraction.stream_reader import StreamText

# All of these are a judgement: as many lines as a person reads at a glance.
_FEW_ITEMS: Final = 8
_MOST_STREAMS: Final = 8
_LONG_TEXT: Final = 1_500  # characters
_FRONT: Final = 1_500
_BACK: Final = 2_500
_FIRST_LINES: Final = 2
_LAST_LINES: Final = 6
_LINE_LENGTH: Final = 2_000
_SHORT_LOG: Final = 3  # lines
# A command names itself before its errors, in whatever language (GNU coding standards, "Formatting Error Messages").
_OF_COMMAND: Final = re.compile(
    r"(?:/[\w./-]{1,40}/)?(?:cp|mv|rm|ln|mkdir|rmdir|cat|ls|dd|df|du|cut|sort|sed|awk|gawk|grep|find|xargs|touch|chmod|chown"
    r"|tar|gzip|unzip|xz|zstd|rsync|scp|ssh|curl|wget|git|make|gcc|g\+\+|cc|ld|bash|sh|sudo|su|env|mount|umount): \S"
)


def sample_ends(streams: Sequence[StreamText], items: Sequence[EvidenceItem]) -> list[EvidenceItem]:
    """The first two and last six lines of each log as context items; none where enough items were found.

    Of a long log none are taken where the beginning of the failure is known.
    """
    if sum(item.role != "context" or bool(item.hits) for item in items) >= _FEW_ITEMS:
        return []
    is_clear = any(
        item.role == "initiating" and item.onset < Onset.SCHEDULER_STRONG_ENTRY and not item.from_scheduler
        for item in items
    )
    known = {(item.stream, item.offset) for item in items}
    out: list[EvidenceItem] = []
    for stream in streams[: _MOST_STREAMS + 1]:
        if stream.is_scheduler or not stream.text.strip() or (is_clear and len(stream.text) > _LONG_TEXT):
            continue
        for offset, number, line in _end_lines(stream.text):
            if (stream.index, offset) in known or is_source_code(stream.text, offset, line):
                continue
            item = _context_item(stream, offset, number, line, len(items) + len(out))
            if item.text[item.message_start :].strip():  # more than a time
                out.append(item)
    return out


def last_of_only_log(streams: Sequence[StreamText], items: Sequence[EvidenceItem]) -> EvidenceItem | None:
    """The item of the last line of the only log; None for several logs, progress, a notice or a part of a block."""
    logs = [one for one in streams if one.text.strip() and not one.is_scheduler]
    if len(logs) != 1:
        return None
    text = logs[0].text.rstrip()
    begin = text.rfind("\n") + 1
    line = text[begin:]
    if line[:1].isspace() or training_progress.step_of(line) is not None:
        return None
    if benign_lines.is_benign(line) or is_overcome(line):
        return None
    return next((item for item in items if item.stream == logs[0].index and item.offset == begin), None)


def only_line(items: Sequence[EvidenceItem]) -> EvidenceItem | None:
    """The first line that tells something, of a log of so few lines that it must show the failure; else None.

    Progress, warnings and what else any run prints tell nothing, also where a log has no other line.
    """
    own = [item for item in items if not item.from_scheduler and item.line_number is not None]
    if len(own) > _SHORT_LOG or any(item.role != "context" for item in own):
        return None
    after_warnings = lines_after_warnings(own)
    telling = [item for item in own if not tells_nothing(item, after_warnings)]
    return next((item for item in telling if _OF_COMMAND.match(item.message)), telling[0] if telling else None)


def lines_after_warnings(items: Iterable[EvidenceItem]) -> frozenset[tuple[int, int | None]]:
    """The streams and numbers of the lines that follow warnings of Python."""
    warnings = (item for item in items if item.line_number is not None and benign_lines.is_python_warning(item.text))
    return frozenset((item.stream, (item.line_number or 0) + 1) for item in warnings)


def tells_nothing(item: EvidenceItem, after_warnings: frozenset[tuple[int, int | None]]) -> bool:
    """Whether a line is progress, of a warning, or what any run prints, and has no telling entry or exception."""
    if training_progress.step_of(item.text) is not None:
        return True
    if item.text[:1].isspace() and (item.stream, item.line_number) in after_warnings:
        return True  # the line of code at which Python warns
    is_plain = item.exception is None and all(hit.strength != "decisive" for hit in item.hits)
    return is_plain and benign_lines.is_routine(item.text)


def _context_item(stream: StreamText, offset: int, number: int, line: str, position: int) -> EvidenceItem:
    header = parse_header(line)
    return EvidenceItem(
        text=line[:_LINE_LENGTH],
        role="context",
        onset=Onset.SAMPLED,
        stream=stream.index,
        position=position,
        offset=offset,
        line_number=number,
        rank=header.rank if header.rank is not None and not header.is_local else stream.source.rank,
        node=stream.source.node or header.host,
        message_start=header.message_start,
        start_offset=offset,
    )


def _end_lines(text: str) -> list[tuple[int, int, str]]:
    """Offset, number and text of the first and last lines of a text, those that are not empty."""
    first = list(_numbered(text[:_FRONT], 0, 1))
    if len(text) <= _FRONT:
        return first if len(first) <= _FIRST_LINES + _LAST_LINES else [*first[:_FIRST_LINES], *first[-_LAST_LINES:]]
    begin = text.find("\n", len(text) - _BACK if len(text) > _BACK else 0) + 1
    last = list(_numbered(text[begin:], begin, text.count("\n", 0, begin) + 1))
    return [*first[:_FIRST_LINES], *last[-_LAST_LINES:]]


def _numbered(text: str, offset: int, number: int) -> Iterator[tuple[int, int, str]]:
    for line in text.split("\n"):
        if line.strip():
            yield offset, number, line
        offset += len(line) + 1
        number += 1
