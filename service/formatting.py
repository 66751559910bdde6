"""How values are written for people: visible control characters, folded long texts, times, spans, numbers."""

import re
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from markupsafe import Markup

LONGEST = 4_000  # characters of one text that a page ever holds; the whole stands in the log and in the API

_BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_UNSEEN = _BIDI + "\u200b\u2060\ufeff\u00ad"
# C0 controls have pictures of their own (U+2400 on); what would reorder or hide text is named.
_VISIBLE = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"}
_VISIBLE |= {0x7F: "\u2421"}
_VISIBLE |= {code: f"[U+{code:04X}]" for code in range(0x80, 0xA0)}
_VISIBLE |= {ord(char): f"[U+{ord(char):04X}]" for char in _UNSEEN + "\u2028\u2029"}
_VISIBLE |= dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
# What colours a terminal says nothing on a page.
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def visible(value: Any) -> Any:
    """Text in which every character can be seen and none acts; anything else as it is. Applied to all that is shown."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return value.translate(_VISIBLE)


def without_colour(text: str) -> str:
    """A log's line without a terminal's colours."""
    return _ANSI.sub("", text)


def cut(text: str, most: int = LONGEST) -> str:
    """The beginning of a text, and how much was left out."""
    if len(text) <= most:
        return text
    return f"{text[:most]} … {len(text) - most:,} more characters"


def ago(at: datetime, now: datetime) -> str:
    """How long ago, in one unit."""
    seconds = (now - at).total_seconds()
    if seconds < 0:
        return "in the future"
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size or (unit == "min" and seconds >= size):
            return f"{int(seconds // size)}\u00a0{unit} ago"
    return "just now"


def exact(at: datetime, zone: ZoneInfo) -> str:
    """An instant as a person writes it down, with its zone."""
    try:
        return f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S %Z}"
    except OverflowError:
        return f"{at:%Y-%m-%d %H:%M:%S} UTC"
