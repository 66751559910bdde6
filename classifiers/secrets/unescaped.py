r"""Strings in a text with their escapes undone: in `{"message": "user,password\nana,Tiger1"}` stand two lines.

Formats are written for plain text; logs hold it in strings of JSON and of programs, with a backslash before each quote.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

LEVELS: Final = 2  # strings within strings
_MOST: Final = 65_536  # characters of a string
_CODE: Final = r"u00[0-7][0-9a-fA-F]|x[0-7][0-9a-fA-F]"
_ESCAPE: Final = re.compile(rf"\\(?:(?P<code>{_CODE})|(?P<sign>[nrtbf\"'\\/]))")
# Escapes that change what the formats see; a backslash alone stands in paths and in shells.
_WORTH: Final = re.compile(rf"\\(?:[nrt\"]|{_CODE})")
_STRING: Final = re.compile(rf"(?<!\\)\"(?P<string>(?:[^\"\\\n]|\\[^\n]){{0,{_MOST}}}+)\"")
_SIGNS: Final = {"n": "\n", "r": "\r", "t": "\t", "b": " ", "f": " "}
_BETWEEN: Final = "\n\n\n"  # between two strings: no format reaches over it


class Unescaped:
    """The strings of a text with escapes, one after the other, without them."""

    __slots__ = ("_begins", "_places", "text")

    def __init__(self, text: str) -> None:
        """`text`: the text that is searched. `self.text` is empty if no string in it has an escape."""
        # Where a run of characters begins in `self.text`, and in `text`.
        self._begins: list[int] = []
        self._places: list[int] = []
        parts: list[str] = []
        length = 0
        for begin, end in _strings(text):
            for part, place in _undone(text, begin, end):
                self._begins.append(length)
                self._places.append(place)
                parts.append(part)
                length += len(part)
        self.text = "".join(parts)

    def place(self, position: int) -> int:
        """The place in the text that was searched of a position in `self.text`."""
        run = bisect_right(self._begins, position) - 1
        return self._places[run] + position - self._begins[run]


def _strings(text: str) -> Iterator[tuple[int, int]]:
    """Where strings with escapes begin and end; a whole line where it has escapes, but in no string between quotes."""
    done = 0
    while (hit := _WORTH.search(text, done)) is not None:
        begin = text.rfind("\n", done, hit.start()) + 1 or done
        end = text.find("\n", hit.end())
        end = end if end >= 0 else len(text)
        strings = [one.span("string") for one in _STRING.finditer(text, begin, end) if _WORTH.search(one["string"])]
        yield from strings or [(begin, end)]
        done = end


def _undone(text: str, begin: int, end: int) -> Iterator[tuple[str, int]]:
    """The characters of a string without its escapes: runs of them, each with its place in the text."""
    done = begin
    for escape in _ESCAPE.finditer(text, begin, end):
        if done < escape.start():
            yield text[done : escape.start()], done
        code, sign = escape["code"], escape["sign"]
        yield chr(int(code[1:], 16)) if code else _SIGNS.get(sign, sign), escape.start()
        done = escape.end()
    if done < end:
        yield text[done:end], done
    yield _BETWEEN, end
