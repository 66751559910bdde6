"""Changes of how much of something jobs get: one that made a limit greater explains nothing that met the limit."""

import re
from typing import Final

# Entries of changes of how much of something jobs get.
_LIMITS: Final = frozenset({"changes.memory-limit", "changes.shared-memory", "changes.quota"})
_VALUE: Final = r"(?P<{name}>\d{{1,15}}(?:\.\d{{1,4}})?) ?(?P<{name}_unit>[KMGTP]?)i?B?"
_FROM_TO: Final = re.compile(
    rf"(?i)(?<![\w.]){_VALUE.format(name='before')} ?(?:->|=>|\u2192|to) ?{_VALUE.format(name='after')}(?![\w.])"
    rf"|(?<![\w.]){_VALUE.format(name='now')} \((?:was|before|from)[ :]{{1,2}}{_VALUE.format(name='old')}\)"
)
_UNITS: Final = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_RAISED: Final = re.compile(r"(?i)\b(?:rais(?:ed|ing)|increas(?:ed|ing)|doubled|extended|lifted|unlimited)\b")
_RESERVED: Final = re.compile(r"(?i)reserved")  # what is kept back from jobs


def raises_limit(text: str, entries: tuple[str, ...]) -> bool:
    """Whether the report of a change says that a limit is greater than before.

    Args:
        text: the report.
        entries: ids of the catalogue entries that match it.
    """
    if _LIMITS.isdisjoint(entries) or _RESERVED.search(text) is not None:
        return False
    found = _FROM_TO.search(text)
    if found is None or _is_version(found):
        return _RAISED.search(text) is not None
    before, after = ("before", "after") if found["before"] is not None else ("old", "now")
    return _size(found, after) >= _size(found, before)


def _is_version(found: re.Match[str]) -> bool:
    return found["before"] is not None and "." in found["before"] and not found["before_unit"]


def _size(found: re.Match[str], name: str) -> float:
    return float(found[name]) * _UNITS[found[f"{name}_unit"].upper()]
