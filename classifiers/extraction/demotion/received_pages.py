"""Files that cannot be read because a server sent a page about its own error instead of them."""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.onset import Onset

# What a server answers. The entries of refusals and missing pages are the user's side, as without markup.
_ANSWERS: Final = frozenset({"service.http-5xx", "service.http-404", "service.http-401-403", "service.http-429"})
_MARKUP: Final = re.compile(r"(?i)<(?:title|h1|html|!doctype html)\b")
# Entries of files that are damaged or no archive, and the same in other words: checksums, formats, signatures.
UNREADABLE: Final = frozenset({"python.pickle-load", "libraries.truncated", "shell.tar", "build.pip-hash"})
_UNREADABLE: Final = re.compile(
    r"(?i)checksums? [^\n]{0,40}\bnot match|checksum[^\n]{0,40}\b(?:failed|mismatch|wrong)|not in gzip format"
    r"|not (?:a|an) (?:valid )?(?:zip|gzip|tar|hdf5|parquet|image|archive|squashfs|npy)\b|cannot identify image"
    r"|JSONDecodeError|unexpected token '?<|invalid (?:header|magic|signature|file format)|bad magic number"
    r"|end-of-central-directory|does not look like a tar|tar: child returned"
    r"|unable to (?:open|read) file \(file signature"
)
_RANGE: Final = 400  # characters of a line that are read (judgement)


def demote_unreadable(items: Sequence[EvidenceItem]) -> None:
    """Let files that cannot be read be a consequence where their log shows the page that a server sent instead.

    The page stands before the error if the download prints it, and after it if somebody looked into the file.

    Args:
        items: all items; changed in place.
    """
    pages = {item.stream for item in items if _is_page(item)}
    if not pages:  # most cases
        return
    for item in items:
        if item.stream in pages and item.role == "initiating" and not _is_page(item) and _is_unreadable(item):
            item.role, item.onset, item.explained = "cascade", Onset.NEUTRAL, True


def _is_page(item: EvidenceItem) -> bool:
    return (
        item.role == "initiating"
        and item.line_number is not None
        and any(hit.id in _ANSWERS for hit in item.hits)
        and _MARKUP.search(item.message, 0, _RANGE) is not None
    )


def _is_unreadable(item: EvidenceItem) -> bool:
    return any(hit.id in UNREADABLE for hit in item.hits) or _UNREADABLE.search(item.message, 0, _RANGE) is not None
