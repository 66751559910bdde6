"""Reports on networks and file systems that cannot be why the program after them ended."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from classifiers import signatures
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.onset import Onset
from classifiers.relevance.event_rules import of_programs

_LINKS: Final = ("network.", "adapters.", "fabrics.")
_FILE_SYSTEMS: Final = "storage."
_OF_CODE: Final = "GC."  # categories of errors in the code itself: no file and no other process is involved


def withdraw_unrelated(items: Sequence[EvidenceItem]) -> None:
    """Withdraw reports on links and file systems that stand before an error in the code itself that ended the process.

    A name, a key or a type that is wrong in the code is wrong whatever the network does. Decisive reports on file systems stay: the code may have read damaged files.

    Args:
        items: all items; changed in place.
    """
    ended: dict[int, int] = {}
    for item in items:
        if item.role == "initiating" and item.ends_process and item.exception is not None and not item.survived:
            if item.line_number is not None and any(hit.id in _of_code() for hit in item.hits):
                ended[item.stream] = max(ended.get(item.stream, 0), item.offset)
    if not ended:
        return
    for item in items:
        if item.role == "initiating" and item.offset < ended.get(item.stream, 0) and _is_report(item):
            item.role, item.onset = "context", Onset.WITHDRAWN


@cache
def _of_code() -> frozenset[str]:
    """Ids of the entries that are about errors in the code itself, whatever else the case shows."""
    entries = signatures.packaged().by_id
    return frozenset(
        name
        for name in of_programs()
        if entries[name].categories and all(code.startswith(_OF_CODE) for code in entries[name].categories)
    )


def _is_report(item: EvidenceItem) -> bool:
    """Whether a line only reports on a link or a file system, and no exception of the program."""
    found = [hit for hit in item.hits if hit.role == "initiating" and not hit.id.startswith("events.")]
    return (
        item.exception is None
        and bool(found)
        and all(
            hit.id.startswith(_LINKS) or (hit.id.startswith(_FILE_SYSTEMS) and hit.strength != "decisive")
            for hit in found
        )
    )
