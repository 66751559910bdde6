"""Progress lines: where a run stops reporting steps. An error after which the ranks go on to report is no failure.

Progress lines are found by their shape, whatever their words are: lines of the same words with other numbers that come
back all through the log and do not complain. Of each shape one run of letters is searched from the end of the log, so
that a log of any size costs a few searches.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import Final

from classifiers.extraction.line_headers import parse_header, time_of
from classifiers.patterns.literal_search import Literals

# Letters in ASCII stay, all other bytes become spaces: that takes a fifth of the time of a search for words.
_ONLY_LETTERS: Final = bytes(code if bytes([code]).isalpha() or code == ord("_") else ord(" ") for code in range(256))
_SHORTEST_WORD: Final = 3
_SEGMENT: Final = re.compile(r"[A-Za-z_][A-Za-z_ ()]{2,40}[:=|]?")
_COMPLAINTS: Final = (
    "error", "timeout", "timed out", "fail", "exception", "traceback", "abort", "warn", 'file "', "frame #", "signal",
    "closed", "retry", "killed", "nccl info", " at 0x", "waiting for", "still waiting", "pending",
)  # fmt: skip
_FRAME: Final = '  File "'
# When a shape counts as progress (judgement).
_FEWEST_REGIONS: Final = 2
_FEWEST_LINES: Final = 4
_SHARE_OF_LINES: Final = 12  # one of so many
_MOST_SHAPES: Final = 4
_COMMON_SHARE: Final = 0.9
# A number that tells how far a run is grows from line to line, but for a new epoch now and then; so does the time.
_GROWING_SHARE: Final = 0.75
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_MOST_NUMBERS: Final = 12
_AT_ONCE_S: Final = 2.0  # what is printed at once is printed within this time (judgement)
# Limits of what is read (judgement).
_MOST_SEARCHES: Final = 800
_SHAPE_RANGE: Final = 160
_SHAPE_WORDS: Final = 8
_LINE_RANGE: Final = 300
_LINE_LENGTH: Final = 400
_TIME_RANGE: Final = 200
# A process writes its standard output in blocks of some KiB: so many characters of progress from before its end may
# follow its last error (judgement).
_BUFFERED_LENGTH: Final = 12_000
_FOLLOWING_LENGTH: Final = 150  # less text after a line shows nothing (judgement)

Shape = tuple[bytes, ...]


class ProgressLines:
    """The progress lines of one log, searched when they are first needed.

    Args:
        text: the log.
        load_samples: gives sampled lines by region, and how many ranks print to the log.
    """

    def __init__(self, text: str, load_samples: Callable[[], tuple[list[list[str]], int]]) -> None:
        self._text = text
        self._load_samples = load_samples
        self._last_offset: int | None = None
        self._ranks = 1
        self._shapes: Sequence[tuple[Shape, str]] = ()

    def last_offset(self) -> int:
        """The offset of about the last two progress lines of each rank, 0 where there are fewer."""
        if self._last_offset is None:
            samples, self._ranks = self._load_samples()
            from_end = max(_FEWEST_LINES, 2 * self._ranks + 2)
            self._shapes = _find_shapes(samples)
            offsets = (self._offset_from_end(shape, anchor, from_end) for shape, anchor in self._shapes)
            self._last_offset = max(offsets, default=0)
        return self._last_offset

    def _offset_from_end(self, shape: Shape, anchor: str, from_end: int) -> int:
        """The offset of a line of a shape, counted from the end, 0 where there are fewer near the end."""
        text, at = self._text, len(self._text)
        for _ in range(_MOST_SEARCHES):
            at = text.rfind(anchor, 0, at)
            if at < 0:
                return 0
            begin = text.rfind("\n", max(0, at - _LINE_LENGTH), at) + 1
            if _shape_of(text[begin : begin + _SHAPE_RANGE]) == shape:
                from_end -= 1
                if from_end == 0:
                    return begin
            at = max(begin, 1)
        return 0

    def continues_after(self, offset: int, *, process_ended: bool) -> bool:
        """Whether the ranks go on to report progress after an offset.

        Args:
            offset: where the line in question begins.
            process_ended: whether its process does not go on after it: then its buffered output may follow, and more
                progress is needed.
        """
        if len(self._text) - offset < (_BUFFERED_LENGTH if process_ended else _FOLLOWING_LENGTH):
            return False
        last = self.last_offset()
        return offset < last - (_BUFFERED_LENGTH * max(1, self._ranks) if process_ended else 0)

    def last_time(self) -> float | None:
        """The time of about the last progress lines, None where they have none."""
        at = self.last_offset()
        return self._time_at(at) if at > 0 else None

    def latest_time(self) -> float | None:
        """The time of the very last progress line, None where it has none."""
        if self.last_offset() <= 0:
            return None
        times = (self._time_at(self._offset_from_end(shape, anchor, 1)) for shape, anchor in self._shapes)
        return max((time for time in times if time is not None), default=None)

    def _time_at(self, offset: int) -> float | None:
        begin = self._text.rfind("\n", 0, offset) + 1
        return time_of(self._text[begin : begin + _TIME_RANGE].partition("\n")[0])


def _shape_of(line: str) -> Shape:
    front = line[:_SHAPE_RANGE].partition("\n")[0].encode("utf-8", "replace")
    words = [word for word in front.translate(_ONLY_LETTERS).split() if len(word) >= _SHORTEST_WORD]
    return tuple(words[:_SHAPE_WORDS])


def _find_shapes(samples: list[list[str]]) -> list[tuple[Shape, str]]:
    """The shapes of progress lines in samples by region, each with a run of letters to search for."""
    lines: dict[Shape, list[str]] = {}
    regions: dict[Shape, set[int]] = {}
    for region, sampled in enumerate(samples):
        complaining = _complaining(sampled)
        for number, line in enumerate(sampled):
            # Below a frame of a traceback stands a source line, which many ranks print alike.
            is_source = number > 0 and _FRAME in sampled[number - 1][:_LINE_RANGE]
            shape = () if number in complaining or is_source else _shape_of(line)
            if not shape:
                continue
            known = lines.get(shape)
            if known is None:
                lines[shape], regions[shape] = [line], {region}
            else:
                known.append(line)
                if len(samples) > 1:
                    regions[shape].add(region)
    fewest = max(_FEWEST_LINES, sum(map(len, samples)) // _SHARE_OF_LINES)
    out = []
    for shape, found in sorted(lines.items(), key=lambda item: -len(item[1]))[:_MOST_SHAPES]:
        everywhere = len(samples) == 1 or len(regions[shape]) >= _FEWEST_REGIONS
        if len(found) < fewest or not everywhere or len(set(map(_without_time, found))) < len(found) // 2:
            continue
        if not _grows(found) or _is_only_tag(shape, lines):
            continue
        anchor = _anchor(found, [line for other, some in lines.items() if other != shape for line in some])
        if anchor is not None:
            out.append((shape, anchor))
    return out


def _is_only_tag(shape: Shape, lines: Mapping[Shape, Sequence[str]]) -> bool:
    """Whether the words of a shape are those that a collector writes before each line, such as the name of a pod.

    Rulers, empty lines and lines of numbers have no others.
    """
    longer = sum(len(some) for other, some in lines.items() if len(other) > len(shape) and other[: len(shape)] == shape)
    return longer > len(lines[shape]) and longer + len(lines[shape]) >= _COMMON_SHARE * sum(map(len, lines.values()))


def _without_time(line: str) -> str:
    """A line without its header: a line that reports the same each time is no progress."""
    return line[parse_header(line).message_start :]


def _grows(lines: Sequence[str]) -> bool:
    """Whether lines were printed over some time, or have a number that grows: the rows of a table have neither."""
    times = [time_of(line[:_TIME_RANGE]) for line in (lines[0], lines[-1])]
    if times[0] is not None and times[1] is not None and times[1] - times[0] > _AT_ONCE_S:
        return True
    rows = [
        [float(one) for one in _NUMBER.findall(_without_time(line)[:_LINE_RANGE])[:_MOST_NUMBERS]] for line in lines
    ]
    return any(
        column[-1] > column[0]
        and sum(later >= earlier for earlier, later in pairwise(column)) >= _GROWING_SHARE * (len(column) - 1)
        for column in zip(*rows, strict=False)
    )


def _complaining(lines: Sequence[str]) -> set[int]:
    """The places of the lines that complain; all are searched in one pass."""
    fronts = [line[:_LINE_RANGE].lower() for line in lines]
    starts = list(accumulate((len(front) + 1 for front in fronts), initial=0))
    return {bisect_right(starts, begin) - 1 for _, begin, _ in _complaints().find("\n".join(fronts))}


@cache
def _complaints() -> Literals:
    return Literals(_COMPLAINTS)


def _anchor(lines: Sequence[str], others: Sequence[str]) -> str | None:
    """The run of letters that nearly all of the lines have and the others have least often, None without one."""
    counts = Counter(part for line in lines for part in set(_SEGMENT.findall(line[:_LINE_RANGE])))
    common = [part for part, count in counts.items() if count >= _COMMON_SHARE * len(lines)]
    elsewhere = "\n".join(others)
    return min(common, key=lambda part: (elsewhere.count(part), -len(part))) if common else None
