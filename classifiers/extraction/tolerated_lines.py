"""Trouble that the lines around it call tolerated: a shell or make goes on, or a tool prints it as a warning."""

import re
from typing import Final

from classifiers.extraction.line_shapes import is_overcome

_MAKE_IGNORED: Final = re.compile(r"g?make(?:\[\d+\])?: \[.*\(ignored\)\s*$")
_SHELL_TRACE: Final = re.compile(r"\++ ")
_SHELL_TRUE: Final = re.compile(r"\++ (?:true|:)\s*$")
_WARNING_HEADING: Final = re.compile(r"(?:\u2502 )?(?:CMake )?[Ww]arning\b|(?:\u2502 )?WARNING\b")
_BLOCK_MARKS: Final = (" ", "\t", "\u2502")
# How much around a line is read (judgement: a warning of a tool is a paragraph).
_MOST_LINES: Final = 8
_LINE_RANGE: Final = 400


def is_tolerated(text: str, offset: int, end: int) -> bool:
    """Whether the program went on after a line, by the lines around it.

    Args:
        text: the log.
        offset: where the line begins.
        end: where it ends.
    """
    following = text[end + 1 : end + 1 + _LINE_RANGE].partition("\n")[0]
    if _MAKE_IGNORED.match(following) or _SHELL_TRUE.match(following):
        return True
    if _SHELL_TRACE.match(following) and is_overcome(following):
        return True
    return text.startswith(_BLOCK_MARKS, offset) and _is_in_warning(text, offset)


def _is_in_warning(text: str, offset: int) -> bool:
    """Whether an indented line belongs to a paragraph that a tool begins with the word "Warning"."""
    for _ in range(_MOST_LINES):
        begin = text.rfind("\n", 0, max(0, offset - 1)) + 1
        if begin >= offset:
            return False
        line = text[begin : min(offset - 1, begin + _LINE_RANGE)]
        offset = begin
        if _WARNING_HEADING.match(line):
            return True
        if line.strip() and not line.startswith(_BLOCK_MARKS):
            return False
    return False
