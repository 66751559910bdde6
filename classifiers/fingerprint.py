"""What makes two failures the same kind: a short hash over what began it, without ids, paths, hosts and numbers.

Versioned: a fingerprint compares only with one of the same version. It is made of the masked first line that began the
failure (or the leading line of any role where nothing did), its exception class, the catalogue entry that knows it and
the cause. Lines longer than 160 masked characters count with their first 160.
"""

import hashlib
import re
from typing import Final

from classifiers.items import Extracted, Item
from classifiers.masking import mask

VERSION: Final = 1
_LENGTH: Final = 160
_QUOTED: Final = re.compile(r"'[^']{0,200}'|\"[^\"]{0,200}\"|`[^`]{0,200}`")
_NAMES: Final = re.compile(r"\b(?=\w*(?:\d|#))[\w#.-]+\b")


def _essence(item: Item) -> str:
    entry = next((hit for hit in item.hits if hit.strength != "weak" and hit.role == item.role), None)
    if entry is not None:
        return entry.id
    line = _QUOTED.sub("<q>", mask(item.bare[:600]))
    return _NAMES.sub("#", line)[:_LENGTH].lower()


def fingerprint(extracted: Extracted, cause: str) -> str:
    """The kind of a failure as `v1:` and 16 hexadecimal digits."""
    leading = next((item for item in extracted.items if item.role == "initiating"), None)
    if leading is None:
        leading = next((item for item in extracted.items if item.hits or item.role != "context"), None)
    if leading is None and extracted.items:
        leading = extracted.items[-1]
    job = extracted.case.job
    parts = [
        cause,
        leading.exception or "" if leading else "",
        _essence(leading) if leading else f"{job.status} {job.reason}",
    ]
    digest = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
    return f"v{VERSION}:{digest[:16]}"
