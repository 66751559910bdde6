"""Where a run's daily talk ends: a complaint after which the ranks went on reporting their steps began no failure.

Daily talk is found by its shape, whatever its words are: lines of the same words with other numbers that come back all
through the text and do not complain. Of each shape one run of letters is the anchor that is looked for, so that a text
of any size costs a few searches from its end.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Final

from classifiers.extraction.line_headers import time_of

_WORD: Final = re.compile(r"[A-Za-z_]{3,}")
_SEGMENT: Final = re.compile(r"[A-Za-z_][A-Za-z_ ()]{2,40}[:=|]?")
_COMPLAINTS: Final = (
    "error", "timeout", "timed out", "fail", "exception", "traceback", "abort", "warn", 'file "', "frame #", "signal",
    "closed", "retry", "killed", "nccl info", " at 0x",
)  # fmt: skip
_NUMBERS: Final = 2
_LEAST: Final = 4
_SHAPES: Final = 4
_BLOCK: Final = 12_000
_ROOM: Final = 150
_TRIES: Final = 800
_LOOK: Final = 160
_LONG_LINE: Final = 400


class Chatter:
    """The daily talk of one text, looked for at the first question.

    `look` gives sampled lines by region and how many ranks talk.
    """

    def __init__(self, text: str, look: Callable[[], tuple[list[list[str]], int]]) -> None:
        self._text = text
        self._look = look
        self._end: int | None = None
        self._ranks = 1

    def end(self) -> int:
        """The offset of the last but some lines of daily talk (two steps of all ranks), 0 where there are fewer."""
        if self._end is None:
            samples, ranks = self._look()
            self._ranks = ranks
            ends = (self._last(shape, anchor, max(_LEAST, 2 * ranks + 2)) for shape, anchor in _anchors(samples))
            self._end = max(ends, default=0)
        return self._end

    def _last(self, shape: tuple[str, ...], anchor: str, behind: int) -> int:
        """The offset of the last but so many lines of a shape, 0 where there are fewer near the text's end."""
        text, at = self._text, len(self._text)
        for _ in range(_TRIES):
            at = text.rfind(anchor, 0, at)
            if at < 0:
                return 0
            begin = text.rfind("\n", max(0, at - _LONG_LINE), at) + 1
            if _shape(text[begin : begin + _LOOK]) == shape:
                behind -= 1
                if behind == 0:
                    return begin
            at = max(begin, 1)
        return 0

    def goes_on(self, offset: int, *, sure: bool) -> bool:
        """Whether daily talk goes on after an offset; where the line there is `sure` to end a process, for long.

        A process' standard output is buffered in blocks: some talk from before its end may stand after its last words.
        """
        if len(self._text) - offset < (_BLOCK if sure else _ROOM):
            return False
        end = self.end()
        return offset < end - (_BLOCK * max(1, self._ranks) if sure else 0)

    def last_time(self) -> float | None:
        """The time of the last but some lines of daily talk, None where they have none."""
        at = self.end()
        if at <= 0:
            return None
        begin = self._text.rfind("\n", 0, at) + 1
        return time_of(self._text[begin : begin + 200])


def _shape(line: str) -> tuple[str, ...]:
    end = line.find("\n")
    return tuple(_WORD.findall(line, 0, end if 0 <= end < _LOOK else _LOOK)[:8])


def _anchors(samples: list[list[str]]) -> list[tuple[tuple[str, ...], str]]:
    shapes: dict[tuple[str, ...], list[str]] = defaultdict(list)
    regions: dict[tuple[str, ...], set[int]] = defaultdict(set)
    total = 0
    for region, lines in enumerate(samples):
        for line in lines:
            total += 1
            low = line[:300].lower()
            if any(word in low for word in _COMPLAINTS):
                continue
            shape = _shape(line)
            if shape:
                shapes[shape].append(line)
                regions[shape].add(region)
    whole = len(samples) == 1
    out = []
    for shape, lines in sorted(shapes.items(), key=lambda one: -len(one[1]))[:_SHAPES]:
        if len(lines) < max(_LEAST, total // 12) or not (whole or len(regions[shape]) >= _NUMBERS):
            continue
        if len(set(lines)) < len(lines) // 2:
            continue
        counts = Counter(part for line in lines for part in set(_SEGMENT.findall(line[:300])))
        common = [part for part, count in counts.items() if count >= 0.9 * len(lines)]
        if common:
            others = "\n".join(line for name, some in shapes.items() if name != shape for line in some)
            out.append((shape, min(common, key=lambda part: (others.count(part), -len(part)))))
    return out
