"""The excerpt of a log: its end and the window around its first error, with line numbers in the file.

The log is read once, in pieces; only a few windows are held in memory. Words of failure_words.toml show errors.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ahocorasick_rs import BytesAhoCorasick


@dataclass(frozen=True, slots=True)
class FailureWords:
    """One automaton for the strong words, one for the weak; `longest` is the longest word's length in bytes."""

    strong: BytesAhoCorasick
    weak: BytesAhoCorasick
    longest: int


def first(words: BytesAhoCorasick, data: bytes) -> int | None:
    """Return the offset of the first of `words` in `data`; None if there is none."""
    found = words.find_matches_as_indexes(data)
    return found[0][1] if found else None


@cache
def load_failure_words() -> FailureWords:
    """Load the words of failure_words.toml.

    Raises:
        ValueError: an entry lacks text, strength or source.
    """
    with files("service.logs").joinpath("failure_words.toml").open("rb") as file:
        entries = tomllib.load(file)["marker"]
    for entry in entries:
        if not entry.get("text") or entry.get("strength") not in {"strong", "weak"} or not entry.get("source"):
            raise ValueError(f"failure_words.toml: an entry needs text, strength (strong, weak) and source: {entry}")
    strong, weak = (
        [entry["text"].encode() for entry in entries if entry["strength"] == one] for one in ("strong", "weak")
    )
    return FailureWords(BytesAhoCorasick(strong), BytesAhoCorasick(weak), max(map(len, strong + weak)))


TAIL_BYTES = 256 * 1024
SCAN_BYTES = 64 * 1024 * 1024
PIECE_BYTES = 1024 * 1024
# Share of the window before the first error.
_WINDOW_SHARE = 8
_BEFORE_SHARE = 4
_NEWLINE = ord("\n")


@dataclass(frozen=True, slots=True)
class Window:
    """Bytes of a log; `first_line` is the 1-based number of its first line, None if unknown.

    `cut`: text precedes the window. `in_line`: the window begins within a line.
    """

    data: bytes
    first_line: int | None
    cut: bool = False
    in_line: bool = False


@dataclass(slots=True)
class _Capture:
    """The window around one error during reading; `begin` is its offset in the log."""

    begin: int
    first_line: int
    in_line: bool
    data: bytearray


class Excerpt:
    """Takes the pieces of a log in order, then returns its windows."""

    def __init__(self, tail_bytes: int = TAIL_BYTES, *, whole: bool = True) -> None:
        """`whole`: the first piece is the log's beginning, so line numbers are known."""
        self._tail_bytes = tail_bytes
        self._window_bytes = tail_bytes // _WINDOW_SHARE
        self._whole = whole
        self._held = bytearray()  # the last bytes read
        self._held_at = 0  # offset of _held in the bytes read
        self._lines = 0  # newlines before _held
        self._strong: _Capture | None = None
        self._weak: _Capture | None = None

    def feed(self, piece: bytes) -> None:
        """Add the next bytes of the log."""
        unsearched = max(len(self._held) - load_failure_words().longest + 1, 0)
        self._held += piece
        for capture in (self._strong, self._weak):
            if capture is not None:
                capture.data += piece[: self._window_bytes - len(capture.data)]
        if self._strong is None and (len(self._held) > self._tail_bytes or self._held_at or not self._whole):
            self._search(0 if self._held_at == 0 else unsearched)
        surplus = len(self._held) - self._tail_bytes
        if surplus > 0:
            self._lines += self._held.count(b"\n", 0, surplus)
            self._held_at += surplus
            del self._held[:surplus]

    def _search(self, start: int) -> None:
        data = bytes(memoryview(self._held)[start:])
        found = first(load_failure_words().strong, data)
        if found is not None:
            self._strong = self._captured(start + found)
        elif self._weak is None:
            found = first(load_failure_words().weak, data)
            self._weak = None if found is None else self._captured(start + found)

    def _captured(self, at: int) -> _Capture:
        begin, in_line = self._line_start(max(at - self._window_bytes // _BEFORE_SHARE, 0), at)
        return _Capture(
            self._held_at + begin,
            self._lines + self._held.count(b"\n", 0, begin),
            in_line,
            self._held[begin : begin + self._window_bytes],
        )

    def _line_start(self, begin: int, end: int) -> tuple[int, bool]:
        """Return the first start of a line from `begin` to `end` and False, else `begin` and True (within a line)."""
        if begin == 0 and self._held_at == 0 and self._whole:
            return 0, False
        if begin > 0 and self._held[begin - 1] == _NEWLINE:
            return begin, False
        newline = self._held.find(b"\n", begin, end)
        return (begin, True) if newline < 0 else (newline + 1, False)

    def windows(self) -> list[Window]:
        """Return the window around the first error, unless the end contains it, and the end."""
        cut, in_line = self._line_start(0, len(self._held) // 2)
        tail, tail_at = bytes(memoryview(self._held)[cut:]), self._held_at + cut
        end = Window(
            tail,
            self._number(self._lines + self._held.count(b"\n", 0, cut)),
            cut=self._cut_at(tail_at),
            in_line=in_line,
        )
        capture = self._strong or self._weak
        if capture is None or capture.begin >= tail_at:
            return [end]
        data, touching = bytes(capture.data), capture.begin + len(capture.data) >= tail_at
        if touching:
            data = data[: tail_at - capture.begin] + tail
        else:
            data = data[: (data.rfind(b"\n") if b"\n" in data else data.rfind(b" ")) + 1] or data
        around = Window(
            data, self._number(capture.first_line), cut=self._cut_at(capture.begin), in_line=capture.in_line
        )
        return [around] if touching else [around, end]

    def _cut_at(self, place: int) -> bool:
        return place > 0 or not self._whole

    def _number(self, newlines_before: int) -> int | None:
        return newlines_before + 1 if self._whole else None
