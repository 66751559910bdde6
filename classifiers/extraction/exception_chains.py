"""Chains of exceptions: the exception that came first leads, whatever its class and wherever it is printed.

Python prints the first exception of a chain first, Java and Node.js print it last (`Caused by: `, `[cause]: `).
"""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.onset import Onset
from classifiers.extraction.tracebacks import Traceback

_CAUSE: Final = re.compile(r"(?:Caused by|\[cause\]): ")
# What a runtime prints between an exception and its cause: frames, and how many were left out.
_FRAME: Final = re.compile(r"(?:^|[\s:|>\]])(?:at \S|\.\.\. \d)|^\s*[{}]?\s*$|^\s*[\w$]+: ")
_MOST_BETWEEN: Final = 60_000  # characters (judgement: longer traces are cut by loggers as well)


def order_chains(items: Sequence[EvidenceItem], tracebacks: Sequence[Traceback], text: str) -> None:
    """Let the first exception of each chain lead.

    Args:
        items: the items of one log, by offset; changed in place.
        tracebacks: the Python tracebacks of the log, in order.
        text: the log.
    """
    _lift_heads({item.offset: item for item in items}, tracebacks)
    _demote_wrappers(items, text)


def _lift_heads(by_offset: dict[int, EvidenceItem], tracebacks: Sequence[Traceback]) -> None:
    """An error that is often a consequence is none where the exceptions that it led to are errors of their own."""
    head: EvidenceItem | None = None
    for traceback in tracebacks:
        item = by_offset.get(traceback.final_offset)
        if not traceback.chained:
            head = item
        elif (
            head is not None
            and item is not None
            and item.role == head.role == "initiating"
            and head.onset is Onset.LIKELY_CONSEQUENCE
            and item.onset < head.onset
        ):
            head.onset = item.onset


def _demote_wrappers(items: Sequence[EvidenceItem], text: str) -> None:
    """An exception whose cause is printed below it is a consequence of that cause."""
    wrapper: EvidenceItem | None = None
    for item in items:
        is_cause = _CAUSE.match(item.message.lstrip()) is not None and item.role == "initiating"
        if is_cause and wrapper is not None and _only_frames(text, wrapper, item):
            item.onset = min(item.onset, wrapper.onset)
            wrapper.role, wrapper.onset = "cascade", Onset.NEUTRAL
        if item.role == "initiating" and (is_cause or item.exception is not None):
            wrapper = item


def _only_frames(text: str, wrapper: EvidenceItem, cause: EvidenceItem) -> bool:
    between = text[wrapper.offset + len(wrapper.text) : cause.offset]
    return len(between) <= _MOST_BETWEEN and all(_FRAME.search(line) for line in between.splitlines())
