"""Masking: replaces the parts of a line that differ between runs (ids, paths, addresses, numbers)."""

import re
from typing import Final

VERSION: Final = 1

_PATH: Final = "path"
_NUMBER: Final = "number"
_DIGIT: Final = re.compile(r"\d")
# In this order, longer and more specific patterns first: pattern, replacement, and a text that is part of every match
# at least so many times. A line without that text is not searched.
_MASKS: Final = tuple(
    (re.compile(pattern), name, part, least)
    for pattern, name, part, least in (
        (r"\x1b\[[0-9;]*[A-Za-z]", "", "\x1b", 1),
        (r"\b[a-z][a-z0-9+.-]{1,20}://[^\s'\"<>)\]]+", "<url>", "://", 1),
        (r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b", "<id>", "-", 4),
        (r"\b20\d\d[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?", "<time>", ":", 2),
        (r"\b[EWIFD][01]\d[0-3]\d \d\d:\d\d:\d\d(?:\.\d+)?", "<time>", ":", 2),
        (r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b", "<time>", ":", 2),
        (r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b|\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b", "<addr>", ":", 3),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}(?:[:<]\d+>?)?", "<addr>", ".", 3),
        (r"\b0x[0-9a-fA-F]+\b", "<hex>", "0x", 1),
        (r"(?:(?<=[\s'\"=(:,\[])|^)(?:[A-Za-z]:)?[~.]{0,2}[/\\](?:[\w.@+ -]{1,80}[/\\])*[\w.@+-]*", "<path>", _PATH, 1),
        (r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b", "<hex>", _NUMBER, 1),
        (r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", "#", _NUMBER, 1),
    )
)
_SPACE: Final = re.compile(r"\s+")


def mask(line: str) -> str:
    """The line with each variable part replaced by a name in angle brackets, numbers by `#`, runs of space by one."""
    for pattern, name, part, least in _MASKS:
        if part == _NUMBER:
            may_match = _DIGIT.search(line) is not None
        elif part == _PATH:
            may_match = "/" in line or "\\" in line
        else:
            may_match = line.count(part) >= least
        if may_match:
            line = pattern.sub(name, line)
    return _SPACE.sub(" ", line).strip()
