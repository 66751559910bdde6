"""The figures of a chart as JSON, from which charts.js draws it again where scripts run."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo

import orjson


def stacked(
    unit: str,
    limits: Sequence[datetime],
    series: Mapping[str, Sequence[float]],
    *,
    zone: tzinfo = UTC,
    colours: Mapping[str, str] | None = None,
    marks: Sequence[tuple[int, float]] = (),
    partial: Sequence[int] = (),
) -> str:
    """Bars of parts of a period.

    Args:
        unit: the unit of the values.
        limits: the begin of each part, and the end of the last one.
        series: the values of each part by name, from the bottom up.
        zone: the time zone of the times that the page shows.
        colours: the custom property of a name's colour, where it is not the one of the same name.
        marks: numbers and places of marks, as in `marks.places`.
        partial: the numbers of parts that are shorter than a whole day or week; they are drawn paler.
    """
    found = [
        {
            "name": name,
            "values": [round(value, 2) for value in values],
            "colour": (colours or {}).get(name, f"--{name}"),
        }
        for name, values in series.items()
    ]
    times = [int(at.timestamp()) for at in limits]
    whole = all(value == round(value) for values in series.values() for value in values)
    offsets = [_offset(at, zone) for at in limits]  # of each time: the clock may change within the period
    data = {"kind": "stack", "unit": unit, "whole": whole, "limits": times, "offsets": offsets, "series": found}
    return orjson.dumps({**data, "marks": list(marks), "partial": list(partial)}).decode()


def line(
    at: Sequence[float],
    series: Mapping[str, Sequence[float | None]],
    *,
    time: bool = False,
    titles: tuple[str, str] = ("", ""),
    begin: float = 0,
    marks: Sequence[tuple[int, float]] = (),
) -> str:
    """Shares, over time or against another share.

    Args:
        at: the places on the horizontal axis: times by `shown_seconds`, or shares.
        series: the shares by name; all but the first are drawn as dashed lines for comparison.
        time: whether the horizontal axis has times; otherwise it has shares too.
        titles: of the horizontal and the vertical axis.
        begin: where axes of shares begin.
        marks: numbers of marks, and where they are on the horizontal axis.
    """
    found = [{"name": name, "values": list(values)} for name, values in series.items()]
    return orjson.dumps(
        {
            "kind": "line",
            "at": list(at),
            "series": found,
            "time": time,
            "right": titles[0],
            "up": titles[1],
            "from": begin,
            "marks": list(marks),
        }
    ).decode()


def shown_seconds(at: datetime, zone: tzinfo) -> float:
    """Seconds since 1970 on the clock of the page: those of UTC when it shows the same time."""
    return at.timestamp() + _offset(at, zone)


def _offset(at: datetime, zone: tzinfo) -> int:
    try:
        offset = at.astimezone(zone).utcoffset()
    except OverflowError:  # at the first or last day that a date can have
        offset = None
    return int(offset.total_seconds()) if offset else 0
