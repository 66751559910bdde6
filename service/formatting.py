"""Formatting of values for people: visible control characters, truncated texts, times, durations, numbers."""

import re
from datetime import datetime
from math import floor, log10
from typing import Any
from zoneinfo import ZoneInfo

from markupsafe import Markup

from service.contracts.page import COUNT_LIMIT

LONGEST = 4_000  # characters of one text that a page shows at most; log and API have the whole text

# What chats, wikis and mail programs turn into mentions and links in any text.
MENTION = re.compile(r"[@\uff20\ufe6b](?=\S)")
WWW = re.compile(r"(?i)\bwww\.")
# Characters that reorder text or that nobody sees: Default_Ignorable_Code_Point of the Unicode database
# (DerivedCoreProperties.txt), the separators of lines and paragraphs, annotations, and the blank pattern of Braille.
_UNSEEN = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F)),
    *((0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A)),
    (0xE0000, 0xE0FFF),
)
# Within and after a pictograph they choose its look: a joiner and the selector of a coloured picture stay there.
_IN_PICTOGRAPH = re.compile("(?<=[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff\ufe0f])[\u200d\ufe0f]")
# C0 controls have visible symbols (from U+2400); characters that reorder or hide text are named.
_VISIBLE = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"}
_VISIBLE |= {0x7F: "\u2421"}
_VISIBLE |= {code: f"[U+{code:04X}]" for code in range(0x80, 0xA0)}
_VISIBLE |= {code: f"[U+{code:04X}]" for first, last in _UNSEEN for code in range(first, last + 1)}
_VISIBLE |= dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
# Colour codes have no meaning on a page.
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def escape_invisible(value: Any) -> Any:
    """Text in which invisible and control characters are replaced by visible ones; other values unchanged."""
    if not isinstance(value, str) or isinstance(value, Markup) or (value.isascii() and value.isprintable()):
        return value
    kept = [(one.start(), one[0]) for one in _IN_PICTOGRAPH.finditer(value)]
    if not kept:
        return value.translate(_VISIBLE)
    parts: list[str] = []
    done = 0
    for start, character in kept:
        parts += (value[done:start].translate(_VISIBLE), character)
        done = start + 1
    return "".join((*parts, value[done:].translate(_VISIBLE)))


def strip_colour(text: str) -> str:
    """A log line without terminal colour codes."""
    return _ANSI.sub("", text)


def one_line(text: str) -> str:
    """The words of a text on one line; of what does not print nothing is left."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def truncate(text: str, most: int = LONGEST) -> str:
    """The beginning of a text and the number of omitted characters."""
    if len(text) <= most:
        return text
    return f"{text[:most]} … {len(text) - most:,} more characters"


def whole_words(text: str, most: int) -> str:
    """The beginning of a text, cut after a word, with an ellipsis where something is left out."""
    if len(text) <= most:
        return text
    beginning = text[: most - 1]
    if not text[most - 1].isspace():
        beginning = beginning[: beginning.rfind(" ")] if " " in beginning[most // 2 :] else beginning
    return f"{beginning.rstrip()}…"


def shorten(text: str, most: int) -> str:
    """The text, or its beginning and its end with an ellipsis between them: names often differ at their ends only."""
    if len(text) <= most:
        return text
    end = most * 3 // 5
    return f"{text[: most - end - 1]}…{text[-end:]}"


def relative_time(at: str | None, end: datetime) -> str:
    """A text such as `40 s before the end`; empty if no time is known."""
    if at is None:
        return ""
    seconds = (datetime.fromisoformat(at) - end).total_seconds()
    if abs(seconds) < 1:
        return "at the end"
    return f"{duration(abs(seconds))} {'before' if seconds < 0 else 'after'} the end"


def time_ago(at: datetime, now: datetime) -> str:
    """The time since then, in one unit."""
    seconds = (now - at).total_seconds()
    if seconds < 0:
        return "in the future"
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size or (unit == "min" and seconds >= size):
            return f"{int(seconds // size)}\u00a0{unit} ago"
    return "just now"


def exact_time(at: datetime, zone: ZoneInfo) -> str:
    """Date and time in a time zone."""
    try:
        return f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S %Z}"
    except OverflowError:
        return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def number(value: float, digits: int = 0) -> str:
    """1363 → 1,363."""
    return f"{value:,.{digits}f}"


def with_noun(count: int, noun: str) -> str:
    """A count with its noun in the right number: 1 job, 1,097 jobs."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def significant(value: float) -> str:
    """A figure with an uncertainty, in three significant digits: 30089.2 → 30,100; 356.6 → 357; 2.79; 0.0171."""
    if value == 0:
        return "0"
    places = 2 - floor(log10(abs(value)))
    rounded = round(value, places)
    return number(rounded, max(0, 2 - floor(log10(abs(rounded)))))


def counted(value: int) -> str:
    """A count that is bounded by `COUNT_LIMIT` + 1: 10001 → 10,000+."""
    return number(value) if value <= COUNT_LIMIT else f"{number(COUNT_LIMIT)}+"


def gpu_hours(value: float) -> str:
    """GPU-hours with the significant digits only."""
    if value == 0:
        return "0"
    if value < 0.1:  # noqa: PLR2004 - below it one decimal would say nothing
        return "<0.1"
    return number(value, 1) if value < 10 else number(value)  # noqa: PLR2004 - as above


def percent(share: float | None, digits: int = 1) -> str:
    """0.0403 → 4.0 %; 0.0001 → <0.1 %; a dash if unknown."""
    if share is None:
        return "–"
    least = 10.0**-digits
    if 0 < share * 100 < least / 2:
        return f"<{least:.{digits}f}\u00a0%"
    return f"{share * 100:.{digits}f}\u00a0%"


def duration(seconds: float) -> str:
    """A duration in its two largest units."""
    left = max(0, round(seconds))
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}\u00a0{unit}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0\u00a0s"


def confidence(share: float) -> str:
    """The confidence of a verdict; it is never shown as 100 %."""
    return "over 99\u00a0%" if share > 0.995 else percent(share, 0)  # noqa: PLR2004 - what would be written as 100
