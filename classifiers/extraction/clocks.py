"""The clocks of a case: that of the job's logs beside that of its events, and how far others are ahead."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from classifiers.contracts import RawCase
from classifiers.extraction.line_headers import seconds_into_year, time_of
from classifiers.extraction.stream_reader import StreamText

# How far ahead or behind an event says that a clock is.
_BY: Final = r"(?P<{0}>\d{{1,7}}(?:\.\d{{1,6}})?) ?(?P<{1}>s|sec|seconds?|min|minutes?|h|hours?)\b"
_OFFSET: Final = re.compile(
    rf"(?i)\bclock\b[^\n]{{0,40}}?\b{_BY.format('first', 'unit')} {{1,3}}(?:too )?(?P<way>ahead|fast|behind|slow)\b"
    r"|\bclock\b[^\n]{0,30}?\b(?P<way_first>ahead|fast|behind|slow)\b[^\n]{0,20}?"
    rf"\b{_BY.format('second', 'unit_last')}"
)
_EVENT_RANGE: Final = 300
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0}
_AHEAD: Final = frozenset({"ahead", "fast"})
# The zone that a time names, where it is the only time of its line: a collector's may stand before the program's own.
_ZONE: Final = re.compile(
    r"[\[({\"]{0,2}20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"(?:(?P<utc>Z)|(?P<sign>[+-])(?P<h>[01]\d):?(?P<m>[0-5]\d))\b(?![^\n]{0,60}\d\d:\d\d:\d\d)"
)
_END_RANGE: Final = 1_500  # characters at each end of a log that are searched for a time (judgement)
_HALF_HOUR_S: Final = 1_800
_LARGEST_ZONE_S: Final = 14 * 3_600
# Judgement: a log begins and ends at most so long after and before its job, or clocks are set otherwise.
_LOG_ENDS_WITHIN_S: Final = 2_700
_AT_ONCE_S: Final = 60  # a job's first line after its start (judgement)


class ClockOfLogs:
    """Turns instants into seconds into the year by the clock that the logs use.

    Most logs give local times without a zone. Their last line and the end of the job are the same moment, but for some
    minutes, and so are their first line and its start: whole half hours between both are the zone. A job may hang long
    after its last line, and a tail of a log begins long after the job: where the two differ, no shift counts first,
    then that of the starts if it is next to whole half hours, as that of a tail seldom is, then that of the ends. A
    zone that the times name counts, if it fits the start or the end. `is_aligned` is false where none fits; the times
    of the logs then cannot be compared with instants.
    """

    def __init__(self, raw: RawCase, streams: Sequence[StreamText]) -> None:
        texts = [one.text for one in streams if not one.is_scheduler]
        first = min((time for text in texts if (time := _first_time(text)) is not None), default=None)
        last = max((time for text in texts if (time := last_time(text)) is not None), default=None)
        pairs = [
            time - _seconds(at)
            for time, at in ((first, raw.job.started_at), (last, raw.job.ended_at))
            if time is not None and at is not None
        ]
        zones = [(zone, behind - zone) for behind in pairs if (zone := _zone(behind)) is not None]
        named = {zone for text in texts for zone in _named_zones(text)}
        if len(named) == 1 and any(abs(behind - min(named)) <= _LOG_ENDS_WITHIN_S for behind in pairs):
            zones = [(min(named), 0.0)]
        self.is_aligned = bool(zones) or not pairs
        begins_at_once = bool(zones) and abs(zones[0][1]) <= _AT_ONCE_S
        best = min(zones if begins_at_once else zones[::-1], key=lambda found: found[0] != 0, default=(0.0, 0.0))
        self._shift: float | None = best[0]

    def forget(self) -> None:
        """From now on all instants count as unknown."""
        self._shift = None

    def of(self, at: datetime | None) -> float | None:
        """An instant by the clock of the logs, None if unknown."""
        return None if at is None or self._shift is None else _seconds(at) + self._shift


def _zone(behind: float) -> float | None:
    """The zone of a clock that differs by so many seconds from an instant; None if it is not by whole half hours."""
    if abs(behind) <= _LOG_ENDS_WITHIN_S:
        return 0.0
    zone = round(behind / _HALF_HOUR_S) * _HALF_HOUR_S
    return float(zone) if abs(zone) <= _LARGEST_ZONE_S and abs(behind - zone) <= _HALF_HOUR_S / 2 else None


def _seconds(at: datetime) -> float:
    """An instant in the form of `line_headers.time_of`, in UTC."""
    if at.tzinfo is not UTC:
        at = at.astimezone(UTC)
    return seconds_into_year(at.month, at.day, at.hour, at.minute, at.second) + at.microsecond / 1e6


def last_time(text: str) -> float | None:
    """The last time in a log, in seconds into the year, None without one."""
    lines = text[-_END_RANGE:].split("\n")
    return next((time for time in map(time_of, reversed(lines)) if time is not None), None)


def _first_time(text: str) -> float | None:
    lines = text[:_END_RANGE].split("\n")
    return next((time for time in map(time_of, lines) if time is not None), None)


def _named_zones(text: str) -> Iterator[float]:
    """The zones that the first and the last lines with a time name, in seconds east of UTC."""
    for lines in (text[:_END_RANGE].split("\n"), reversed(text[-_END_RANGE:].split("\n"))):
        line = next((line for line in lines if time_of(line) is not None), "")
        found = _ZONE.match(line)
        if found is not None:
            seconds = 0.0 if found["utc"] else 3_600.0 * int(found["h"]) + 60.0 * int(found["m"])
            yield -seconds if found["sign"] == "-" else seconds


def clock_ahead(text: str) -> float | None:
    """By how many seconds the text of an event says that the clock of who reports it is ahead; None without that."""
    if "lock" not in text or ("clock" not in text and "Clock" not in text):
        return None
    hit = _OFFSET.search(text, 0, _EVENT_RANGE)
    if hit is None:
        return None
    seconds = float(hit["first"] or hit["second"]) * _UNITS[(hit["unit"] or hit["unit_last"])[0].lower()]
    return seconds if (hit["way"] or hit["way_first"]).lower() in _AHEAD else -seconds
