"""Items of harmless lines (`benign_lines.is_harmless`): their words of failure tell of none."""

from collections.abc import Sequence

from classifiers.extraction import benign_lines
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.onset import Onset


def is_harmless_item(item: EvidenceItem) -> bool:
    """Whether words of failure in an item's line tell of none."""
    return benign_lines.is_harmless(item.text, item.message.lstrip(), item.error_words)


def without_harmless(items: Sequence[EvidenceItem]) -> list[EvidenceItem]:
    """The items without the harmless lines of logs: they would take the places of lines that tell of the failure.

    Lines that the catalogue knows, and those of the scheduler, of tracebacks and of launchers stay.
    """
    return [item for item in items if item.hits or item.exited_ranks or not is_harmless_context(item)]


def is_harmless_context(item: EvidenceItem) -> bool:
    """Whether an item is a harmless line of a log, and no part of a traceback."""
    is_plain = item.role == "context" and item.onset is Onset.NEUTRAL and item.line_number is not None
    return is_plain and not item.from_scheduler and item.exception is None and is_harmless_item(item)
