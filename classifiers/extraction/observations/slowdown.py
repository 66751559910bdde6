"""Whether the steps of a run became slower, also by a log that shows only a few of them, often without times."""

import re
from collections.abc import Sequence
from statistics import median
from typing import Final

from classifiers.extraction import training_progress
from classifiers.extraction.line_headers import time_of
from classifiers.extraction.observations.phases import has_slow_storage
from classifiers.extraction.stream_reader import StreamText, lines_with
from classifiers.relevance.entry_groups import deadlines_reached

# A number with its unit: so many seconds for a step, or so many steps in a second.
_PACE: Final = re.compile(
    r"(?i)(?<![\w.])(?P<value>\d{1,9}(?:\.\d{1,6})?) ?"
    r"(?P<unit>(?:ms|s(?:ec(?:onds)?)?) ?(?:/| per ) ?(?:step|it(?:er(?:ation)?)?|batch|epoch))\b"
)
# A duration that a program prints with each step; it has a unit, or three digits behind its point.
_LASTED: Final = re.compile(
    r"(?i)(?<![\w/])(?P<name>(?:(?:step|iter|batch|epoch)[ _]?)?(?:dt|time|took|duration|elapsed|done in))\b"
    r"[\"']?\s{0,2}[:=]?\s{0,2}(?P<value>\d{1,7}\.\d{1,6}|\d{1,7}(?= ?m?s(?:ec)?\b))(?![\d:])"
)
_RANGE: Final = 500  # characters of a line that are read
# Judgement: of more values than this, the usual pace before and since counts, and not each value.
_MOST_VALUES: Final = 12
_FEWEST_SINCE: Final = 2
# Judgement: so many times slower, of the middle values and of the nearest ones; the pace of one run varies by less.
_SLOWER: Final = 2.0
_EACH_SLOWER: Final = 1.5

_Pace = tuple[float | None, float]


def slowed_down(streams: Sequence[StreamText]) -> bool:
    """Whether a job that did not end in time took several times as long for its steps in the end as before.

    Not where it gave each step more work.
    """
    if next(lines_with(streams, deadlines_reached()), None) is None:
        return False
    texts = [stream.text for stream in streams if not stream.is_scheduler]
    if has_slow_storage(streams):
        return True
    if any(map(training_progress.has_slowed, texts)):
        return not any(map(training_progress.has_more_work, texts))
    return any(slowed_between(text) is not None for text in texts)


def slowed_between(text: str) -> tuple[float | None, float | None] | None:
    """Between which times the steps of a log became slower, each None where its line has no time; None if they did not.

    Args:
        text: a log; it is read only where it is short.
    """
    if len(text) > training_progress.SHORT_LOG or training_progress.raises_work(text):
        return None
    for paces in _series(text):
        place = _first_slower([pace for _, pace in paces])
        if place is not None:
            return paces[place - 1][0], paces[place][0]
    return None


def _first_slower(paces: list[float]) -> int | None:
    """The place from which on a few values are all slower than each before, or many several times as slow."""
    if len(paces) > _MOST_VALUES:
        return training_progress.first_slow(paces)
    for place in range(1, len(paces) - _FEWEST_SINCE + 1):
        before, since = paces[:place], paces[place:]
        if min(since) >= _EACH_SLOWER * max(before) and median(since) >= _SLOWER * median(before):
            return place
    return None


def _series(text: str) -> list[list[_Pace]]:
    """The durations that lines print, and those that their rates mean, by the name of the value, with their times."""
    series: dict[str, list[_Pace]] = {}
    for line in text.split("\n"):
        found = _paces_of(line[:_RANGE])
        time = time_of(line) if found else None
        for name, pace in found.items():
            series.setdefault(name, []).append((time, pace))
    return list(series.values())


def _paces_of(line: str) -> dict[str, float]:
    """The seconds, or any other unit, for one unit of work that a line prints, by the name of the value."""
    found: dict[str, float] = {}
    for hit in _PACE.finditer(line):
        is_ms = hit["unit"].lower().startswith("ms")
        found["step"] = float(hit["value"]) / (1_000 if is_ms else 1)
    for name, rate in training_progress.rates_of(line):
        if rate > 0:
            found["step" if name.startswith(("it", "step")) else name] = 1 / rate
    for hit in _LASTED.finditer(line):
        found.setdefault(hit["name"].lower(), float(hit["value"]))
    duration = training_progress.duration_of(line)
    if duration is not None:
        found.setdefault("duration", duration)
    return found
