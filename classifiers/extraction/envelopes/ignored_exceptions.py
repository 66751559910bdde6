"""Exceptions that Python reports and ignores: in a destructor, or in a function that runs at the exit.

They end nothing, and most runs that end early print some. Source: `sys.unraisablehook`, `atexit`, `sys.excepthook` of
CPython.
"""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.extraction.tracebacks import CHAIN_WORDS

_HEADING: Final = re.compile(
    r"Exception ignored (?:in|on|while)\b|Error in (?:atexit\._run_exitfuncs|sys\.excepthook):"
)
_SIGNS: Final = ("Exception ignored ", "Error in atexit.", "Error in sys.excepthook")
_TRACEBACK: Final = "Traceback (most recent call last):"
_EXCEPTION: Final = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: |$)")
_MOST_FRAMES: Final = 200  # lines
_MOST_BETWEEN: Final = 4  # lines from an exception to the traceback that it led to


def may_be_in(text: str) -> bool:
    """Whether a log may report an ignored exception, by a quick look."""
    return any(sign in text for sign in _SIGNS)


def ignored_lines(lines: Sequence[str]) -> set[int]:
    """The places of the lines that belong to ignored exceptions: heading, frames, and the exception itself."""
    found: set[int] = set()
    for place, line in enumerate(lines):
        heading = _HEADING.search(line)
        if heading is not None and place not in found:
            found.update(range(place, _end(lines, place + 1, heading.start())))
    return found


def _end(lines: Sequence[str], place: int, column: int) -> int:
    """The place after the traceback that begins at a place, behind prefixes of as many characters as the heading's."""
    if place < len(lines) and _EXCEPTION.match(lines[place], column) is not None:  # printed without frames
        return place + 1
    while place < len(lines) and lines[place].startswith(_TRACEBACK, column):
        place += 1
        last = min(len(lines), place + _MOST_FRAMES)
        while place < last and lines[place][column : column + 1] in {" ", "\t"}:
            place += 1
        place = min(place + 1, len(lines))  # the exception
        following = [line[column:] for line in lines[place : place + _MOST_BETWEEN]]
        if not any(words.startswith(CHAIN_WORDS) for words in following):
            break
        place += next((at for at, words in enumerate(following) if words.startswith(_TRACEBACK)), 0)
    return place
