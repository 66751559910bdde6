"""Geometry of the report's chart: GPU-hours lost by week, stacked by side, with the interval of the total."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.reports.document import Point

WIDTH, HEIGHT = 720.0, 160.0
SIDES = ("hardware", "system", "user", "unknown")
_GAP = 0.3  # of a week's width


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
    """The bar of one week: its boxes from bottom to top, and the error bar of the total."""

    point: Point
    boxes: tuple[Box, ...]
    middle: float
    top: float
    bottom: float


def bars(points: Sequence[Point]) -> tuple[Bar, ...]:
    """One bar for each week, scaled so that the highest interval reaches the top of the chart."""
    most = max((point.high for point in points), default=0.0)
    step = WIDTH / max(len(points), 1)
    width = step * (1 - _GAP)

    def length(hours: float) -> float:
        return HEIGHT * hours / most if most > 0 else 0.0

    made = []
    for number, point in enumerate(points):
        left, base = number * step + step * _GAP / 2, HEIGHT
        boxes = []
        for side in SIDES:
            height = length(point.by_side.get(side, 0.0))
            base -= height
            if height > 0:
                boxes.append(Box(side, round(left, 2), round(base, 2), round(width, 2), round(height, 2)))
        made.append(
            Bar(
                point,
                tuple(boxes),
                round(left + width / 2, 2),
                round(HEIGHT - length(point.high), 2),
                round(HEIGHT - length(point.low), 2),
            )
        )
    return tuple(made)
