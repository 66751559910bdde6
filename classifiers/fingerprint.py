"""Fingerprints: a short hash by which failures of the same kind are the same, without ids, paths, hosts and numbers.

A fingerprint is compared only with one of the same version. It is made of the cause, the exception class and the first
initiating line (the leading line of any role where there is none). For a cause of the user's side the line counts with
its masked words and with the function and source line that raised it: the same exception from another place is another
failure. For other causes the catalogue entry that matches the line replaces it, so that one fault of the platform that
hits many programs has one fingerprint. Of longer lines the first 160 masked characters count.
"""

import hashlib
import re
from typing import Final

from classifiers.extraction.evidence_items import EvidenceItem, ExtractedCase
from classifiers.masking import mask

VERSION: Final = 2
_LENGTH: Final = 160  # characters (judgement: longer ends differ between runs)
_QUOTED: Final = re.compile(r"'[^']{0,200}'|\"[^\"]{0,200}\"|`[^`]{0,200}`")
_NAMES: Final = re.compile(r"\b(?=\w*(?:\d|#))[\w#.-]+\b")


def _masked_words(text: str) -> str:
    masked = mask(text[:600])
    if "'" in masked or '"' in masked or "`" in masked:
        masked = _QUOTED.sub("<q>", masked)
    if "#" in masked:  # the mask of every number
        masked = _NAMES.sub("#", masked)
    return masked[:_LENGTH].lower()


def _identity(item: EvidenceItem, *, by_words: bool) -> str:
    if by_words:
        return f"{_masked_words(item.message)}\x1f{_masked_words(item.raised_at)}"
    entry = next((hit for hit in item.hits if hit.strength != "weak" and hit.role == item.role), None)
    return _masked_words(item.message) if entry is None else entry.id


def fingerprint(extracted: ExtractedCase, cause: str) -> str:
    """The fingerprint of a failure with this cause: `v2:` and 16 hexadecimal digits."""
    leading = next((item for item in extracted.items if item.role == "initiating"), None)
    if leading is None:
        leading = next((item for item in extracted.items if item.hits or item.role != "context"), None)
    if leading is None and extracted.items:
        leading = extracted.items[-1]
    job = extracted.case.job
    parts = [
        cause,
        leading.exception or "" if leading else "",
        _identity(leading, by_words=cause.startswith("USER.")) if leading else f"{job.status} {job.reason}",
    ]
    digest = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
    return f"v{VERSION}:{digest[:16]}"
