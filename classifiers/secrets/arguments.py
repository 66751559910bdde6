"""Printed lists of arguments, as a line of a shell: `['mysql', '-pTiger1']`, `a1="-uroot" a2="-pTiger1"`, NUL between.

Formats of commands are written for a line of a shell; programs print the arguments that they call as a list.
"""

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

_MOST: Final = 4096  # characters from the begin of a list to its first option
_WHITE: Final = re.compile(r"\s")
_QUOTED: Final = r"'[^'\n]{0,1024}'|\"[^\"\n]{0,1024}\""
_NUL: Final = r"\x00|\\x00|\\u0000|\^@"
_SIGN: Final = re.compile(rf"[\"']|{_NUL}")
_BETWEEN_NUL: Final = r"[^\s\x00\\^\"'\[\]]"
# What stands before an option in a list -> what the list begins with, the list, and one argument in it.
_Kind = tuple[str, re.Pattern[str], re.Pattern[str]]
_LISTS: Final[dict[tuple[str, ...], _Kind]] = {
    ("', '-", '", "-', "','-", '","-'): (
        "[",
        re.compile(rf"\[(?:\s{{0,20}}+(?:{_QUOTED}),?+){{2,256}}+"),
        re.compile(_QUOTED),
    ),
    # As the audit log of Linux has them.
    ('" a1="-', '" a2="-'): (
        "a0=",
        re.compile(r"(?: ?a\d{1,3}=\"[^\"\n]{0,1024}\"){2,256}+"),
        re.compile(_QUOTED),
    ),
    # As `/proc/1/cmdline` has them.
    ("\0-", r"\x00-", r"\u0000-", "^@-"): (
        "",
        re.compile(rf"{_BETWEEN_NUL}{{1,1024}}+(?:(?:{_NUL}){_BETWEEN_NUL}{{1,1024}}+){{1,256}}+"),
        re.compile(rf"(?:{_NUL}|\A){_BETWEEN_NUL}{{1,1024}}"),
    ),
}
# What stands in such a list before an option: texts to look for.
BEFORE_OPTION: Final = tuple(sign for signs in _LISTS for sign in signs)


class ShellLine:
    """The arguments of a list, divided by spaces."""

    __slots__ = ("_begins", "text")

    def __init__(self, arguments: list[tuple[int, str]]) -> None:
        """`arguments`: the place of each in the text that was searched, and itself."""
        self._begins: list[tuple[int, int]] = []
        length = 0
        for place, argument in arguments:
            self._begins.append((length, place))
            length += len(argument) + 1
        self.text = " ".join(_WHITE.sub("_", argument) for _, argument in arguments)

    def place(self, position: int) -> int:
        """The place in the text that was searched of a position in the line."""
        begin, place = self._begins[bisect_right(self._begins, (position, sys.maxsize)) - 1]
        return place + position - begin


def shell_lines(text: str, options: list[int]) -> Iterator[ShellLine]:
    """The lists in a text; `options`: where one of `BEFORE_OPTION` begins, in order."""
    end = 0
    for option in options:
        if option < end:
            continue
        kind = next(kind for signs, kind in _LISTS.items() if text.startswith(signs, option))
        begin = _begin(text, kind[0], max(end, option - _MOST), option)
        hit = kind[1].match(text, begin) if begin >= 0 else None
        if hit is None or hit.end() <= option:
            continue
        end = hit.end()
        yield ShellLine(list(_arguments(hit[0], hit.start(), kind[2])))


def _begin(text: str, sign: str, first: int, option: int) -> int:
    """Where a list with an option may begin, from `first`; -1 if nowhere."""
    if sign:
        return text.rfind(sign, first, option + len(sign))
    return max(max(text.rfind(white, first, option) for white in " \t\n\"'") + 1, first)


def _arguments(whole: str, start: int, argument: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """The place and text of each argument of a list, without the signs around it."""
    for one in argument.finditer(whole):
        sign = _SIGN.match(one[0])
        before = sign.end() if sign is not None else 0
        yield start + one.start() + before, one[0][before : -1 if one[0][0] in "'\"" else None]
