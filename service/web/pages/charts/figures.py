"""The figures of a chart as JSON, from which charts.js draws it again where scripts run."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import orjson


def stacked(
    unit: str,
    limits: Sequence[datetime],
    series: Mapping[str, Sequence[float]],
    *,
    offset: float = 0,
    colours: Mapping[str, str] | None = None,
    marks: Sequence[tuple[int, float]] = (),
    partial: Sequence[int] = (),
) -> str:
    """Bars of parts of a period.

    Args:
        unit: the unit of the values.
        limits: the begin of each part, and the end of the last one.
        series: the values of each part by name, from the bottom up.
        offset: seconds between UTC and the times that the page shows.
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
    data = {"kind": "stack", "unit": unit, "whole": whole, "limits": times, "series": found, "offset": offset}
    return orjson.dumps({**data, "marks": list(marks), "partial": list(partial)}).decode()


def line(
    at: Sequence[float],
    series: Mapping[str, Sequence[float | None]],
    *,
    offset: float | None = None,
    titles: tuple[str, str] = ("", ""),
    begin: float = 0,
    marks: Sequence[tuple[int, float]] = (),
) -> str:
    """Shares, over time or against another share.

    Args:
        at: the places on the horizontal axis: seconds, or shares.
        series: the shares by name; all but the first are drawn as dashed lines for comparison.
        offset: as in `stacked`; None: the horizontal axis has shares too.
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
            "time": offset is not None,
            "offset": offset or 0,
            "right": titles[0],
            "up": titles[1],
            "from": begin,
            "marks": list(marks),
        }
    ).decode()
