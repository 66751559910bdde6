"""What the suspect rank did after its last progress, where ranks wait for one another in different places.

A rank that skips a collective, or enters another one, reports no error. The time-outs of all ranks come minutes later.
What it printed first after its last progress, such as "running validation on rank 0", is where the failure began.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from classifiers.extraction.benign_lines import is_benign
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.line_attribution import LineAttribution
from classifiers.extraction.line_headers import time_of
from classifiers.extraction.stream_reader import StreamText
from classifiers.extraction.tracebacks import indented_message
from classifiers.relevance.entry_groups import wait_timeouts

# Further entries by which ranks say that they wait in different places.
_WAITS_ALONE: Final = frozenset({"horovod.stall", "pytorch.collective-mismatch"})
_NO_ACT: Final = ("NCCL INFO", "[W", "[E", "Warning")
_NUMBER: Final = re.compile(r"\d+")
# Judgement: how far a line is looked for, in characters; which part of a message tells whether it comes back; and up to
# which share of a log, or how many times, a message may come back that is no progress.
_RANGE: Final = 40_000
_FRONT: Final = 40
_SHARE: Final = 0.03
_FEW: Final = 3


def last_act(
    items: Sequence[EvidenceItem],
    rank: int | None,
    streams: Sequence[StreamText],
    attributions: Sequence[LineAttribution | None],
) -> EvidenceItem | None:
    """The first line that the suspect rank printed after its last progress; None where it shows none.

    Args:
        items: the items of the case, most telling first.
        rank: the suspect rank.
        streams: the texts of the case.
        attributions: who printed which line, by stream.
    """
    first = items[0] if items else None
    if first is None or rank is None or not _waits_alone(first):
        return None
    for stream, attribution in zip(streams, attributions, strict=True):
        if stream.is_scheduler or attribution is None:
            continue
        complaints = [
            item.offset for item in items if item.stream == stream.index and item.rank == rank and _complains(item)
        ]
        end = min(complaints, default=len(stream.text))
        found = _first_after_progress(stream.text[:end], rank, stream.source.rank, attribution)
        if found is not None:
            offset, start = found
            text = stream.text[offset : stream.text.find("\n", offset) if "\n" in stream.text[offset:] else None]
            return replace(
                first,
                text=text.rstrip(),
                stream=stream.index,
                offset=offset,
                start_offset=offset,
                line_number=stream.text.count("\n", 0, offset) + 1,
                rank=rank,
                node=stream.source.node or first.node,
                time=time_of(text) or first.time,
                message_start=start,
                exception=None,
                missing_ranks=(),
                error_words=frozenset(),
            )
    return None


def _waits_alone(item: EvidenceItem) -> bool:
    return item.role == "initiating" and any(hit.id in _WAITS_ALONE or hit.id in wait_timeouts() for hit in item.hits)


def _complains(item: EvidenceItem) -> bool:
    return item.line_number is not None and item.role in {"initiating", "cascade"}


def _first_after_progress(
    text: str, rank: int, of_stream: int | None, attribution: LineAttribution
) -> tuple[int, int] | None:
    """Offset and beginning of the message of the first line that a rank printed after its last progress.

    None where the last line is progress, or where the log shows no progress.
    """
    begin = max(0, len(text) - _RANGE)
    lines = text[begin:].split("\n")
    offset = len(text)
    found: tuple[int, int] | None = None
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        offset -= len(line) + (number < len(lines) - 1)
        header = attribution.parse_header(line)
        printed_by = header.rank if header.rank is not None else attribution.infer_rank(line, header)
        if (of_stream if printed_by is None else printed_by) != rank:
            continue
        message, shown = line[header.message_start :], indented_message(line, header)
        if not message.strip() or shown[0].isspace() or any(part in line for part in _NO_ACT) or is_benign(line):
            continue
        if _is_repeated(message, lines):
            return found
        found = (offset, header.message_start)
    return None


def _is_repeated(message: str, lines: Sequence[str]) -> bool:
    """Whether a message is one of those that a log repeats; not one that says again what it waits for."""
    own = message.strip()
    front = _NUMBER.sub("#", own)[:_FRONT]
    places = [number for number, line in enumerate(lines) if front in _NUMBER.sub("#", line)]
    if len(places) <= max(_FEW, _SHARE * len(lines)):
        return False
    in_a_row = places[-1] - places[0] == len(places) - 1
    return not (in_a_row and all(lines[number].rstrip().endswith(own) for number in places))
