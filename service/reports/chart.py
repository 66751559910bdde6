"""Geometry of the report's charts: GPU-hours lost by week and side with the interval of the total, and goodput."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import floor

from service.formatting import gpu_hours
from service.reports.document import GoodputPoint, Point
from service.statistics.records import SIDES

WIDTH, HEIGHT = 720.0, 160.0
_GAP = 0.3  # of a week's width
_ROOM = 1.3  # times the highest bar
_FAR = 100  # times the total; a number beyond that would look known
SHARE_WIDTH, SHARE_HEIGHT = 300.0, 60.0  # of the chart of goodput
_PARTS = 20  # the axis of shares begins at a multiple of 5 %
_STEPS = (1, 2, 5)  # times a power of ten: the heights of an axis


@dataclass(frozen=True, slots=True)
class Box:
    """One side's part of a week's bar, in the chart's own units."""

    side: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar of one week: its boxes from bottom to top, and the error bar of the total.

    `cut`: the interval continues above the chart.
    """

    point: Point
    boxes: tuple[Box, ...]
    middle: float
    top: float
    bottom: float
    cut: bool

    @property
    def upper_end(self) -> str:
        """The upper end of the interval in words."""
        return upper_end(self.point.total, self.point.high)


def height(points: Sequence[Point]) -> float:
    """The GPU-hours at the top of the chart: room above the highest bar, but not for every interval.

    The interval of one week with few and very different failures can be many times its total.
    """
    return nice(_ROOM * max((point.total for point in points), default=0.0))


def upper_end(total: float, high: float) -> str:
    """The upper end of the interval of GPU-hours in words: few failures say only that it is far above their sum."""
    most = _FAR * total
    return gpu_hours(high) if high <= most or not total else f"over {gpu_hours(most)}"


def nice(most: float) -> float:
    """The height of an axis: the next of 1, 2, 5 times a power of ten, and at least 2."""
    scale = 1.0
    while scale * 10 < most:
        scale *= 10
    return next((step * scale for step in _STEPS if step * scale >= max(most, 2)), 10 * scale)


def bars(points: Sequence[Point]) -> tuple[Bar, ...]:
    """One bar for each week."""
    most = height(points)
    step = WIDTH / max(len(points), 1)
    width = step * (1 - _GAP)

    def length(hours: float) -> float:
        return HEIGHT * hours / most

    made = []
    for number, point in enumerate(points):
        left, base = number * step + step * _GAP / 2, HEIGHT
        boxes = []
        for side in SIDES:
            tall = length(point.by_side.get(side, 0.0))
            base -= tall
            if tall > 0:
                boxes.append(Box(side, round(left, 2), round(base, 2), round(width, 2), round(tall, 2)))
        made.append(
            Bar(
                point,
                tuple(boxes),
                round(left + width / 2, 2),
                round(max(HEIGHT - length(point.high), 0.0), 2),
                round(HEIGHT - length(min(point.low, most)), 2),
                point.high > most,
            )
        )
    return tuple(made)


@dataclass(frozen=True, slots=True)
class ShareLine:
    """Goodput by week as a line that is interrupted at weeks without GPU-hours.

    `low`: the share at the bottom of the chart; its top is 1. `runs`: the points (x, y) between the interruptions.
    """

    low: float
    runs: tuple[tuple[tuple[float, float], ...], ...]


def share_floor(shares: Iterable[float]) -> float:
    """The share at which an axis up to 1 begins: the multiple of 5 % below the lowest, at most 95 %."""
    return min(floor(min(shares) * _PARTS), _PARTS - 1) / _PARTS


def share_line(points: Sequence[GoodputPoint]) -> ShareLine | None:
    """The line of these weeks, each in the middle of its part of the width; None if no week has GPU-hours."""
    known = [point.goodput for point in points if point.goodput is not None]
    if not known:
        return None
    low, step = share_floor(known), SHARE_WIDTH / len(points)
    places = [
        None if point.goodput is None else (round((number + 0.5) * step, 2), _share_y(point.goodput, low))
        for number, point in enumerate(points)
    ]
    runs = (tuple(place for place in run if place) for held, run in groupby(places, bool) if held)
    return ShareLine(low, tuple(runs))


def _share_y(share: float, low: float) -> float:
    return round(SHARE_HEIGHT * (1 - share) / (1 - low), 2)
