"""Where, behind the first failing line of a log, a launcher or scheduler begins to end the job.

What is printed from there on is the same whatever failed: processes that are ended, containers that stop, files that
are uploaded. It may be much longer than the failure, and its words are none of the failure.
"""

from collections.abc import Sequence

from classifiers.extraction.evidence_items import EvidenceItem


def first_failing_line(items: Sequence[EvidenceItem]) -> EvidenceItem | None:
    """The item of the first failing line, where it is a line of a log; None if it is not known.

    Args:
        items: all items, most telling first.
    """
    first = next((item for item in items if item.role == "initiating"), None)
    if first is None or first.line_number is None or first.from_scheduler:
        return None
    return first


def closing_offset(first: EvidenceItem | None, effects: Sequence[EvidenceItem]) -> int | None:
    """Where the job begins to be ended, in characters of the log of the first failing line; None where nothing tells.

    Args:
        first: the item of the first failing line, None if it is not known.
        effects: the consequences and the lines of the teardown.
    """
    if first is None:
        return None
    ends = (
        item.offset
        for item in effects
        if item.role == "teardown" and item.stream == first.stream and item.offset > first.offset
    )
    return min(ends, default=None)
