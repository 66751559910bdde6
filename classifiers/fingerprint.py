"""What makes two failures the same kind: a short hash over what began it, without ids, paths, hosts and numbers.

Versioned: a fingerprint compares only with one of the same version. It is made of the cause, the exception class and
the first line that began the failure (the leading line of any role where nothing did). Where the user's side began it,
the line counts with its masked words and with the function and code that raised it: the same exception from another
place is another failure. Elsewhere the catalogue entry that knows the line stands for it, so that one fault of the
platform that meets many programs has one fingerprint. Lines longer than 160 masked characters count with their first
160.
"""

import hashlib
import re
from typing import Final

from classifiers.extraction.evidence_items import EvidenceItem, ExtractedCase
from classifiers.masking import mask

VERSION: Final = 2
_LENGTH: Final = 160
_QUOTED: Final = re.compile(r"'[^']{0,200}'|\"[^\"]{0,200}\"|`[^`]{0,200}`")
_NAMES: Final = re.compile(r"\b(?=\w*(?:\d|#))[\w#.-]+\b")


def _words(text: str) -> str:
    masked = mask(text[:600])
    if "'" in masked or '"' in masked or "`" in masked:
        masked = _QUOTED.sub("<q>", masked)
    if "#" in masked:  # which every number is by now
        masked = _NAMES.sub("#", masked)
    return masked[:_LENGTH].lower()


def _essence(item: EvidenceItem, *, own: bool) -> str:
    if own:
        return f"{_words(item.message)}\x1f{_words(item.raised_at)}"
    entry = next((hit for hit in item.hits if hit.strength != "weak" and hit.role == item.role), None)
    return _words(item.message) if entry is None else entry.id


def fingerprint(extracted: ExtractedCase, cause: str) -> str:
    """The kind of a failure as `v2:` and 16 hexadecimal digits."""
    leading = next((item for item in extracted.items if item.role == "initiating"), None)
    if leading is None:
        leading = next((item for item in extracted.items if item.hits or item.role != "context"), None)
    if leading is None and extracted.items:
        leading = extracted.items[-1]
    job = extracted.case.job
    parts = [
        cause,
        leading.exception or "" if leading else "",
        _essence(leading, own=cause.startswith("USER.")) if leading else f"{job.status} {job.reason}",
    ]
    digest = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
    return f"v{VERSION}:{digest[:16]}"
