"""Sparklines of groups: failures of the last seven days as small bars, with the same figures as text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.groups.records import GroupRow
from service.web.services import Services

PERIOD = timedelta(days=7)
PER_DAY = 4
BARS = 7 * PER_DAY
HEIGHT = 16  # of the drawing; a bar is three units wide with a gap of one
STEP = 4
_BAR = PERIOD / BARS


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Bars of six hours each, the latest on the right. `bars`: their x and height, in units; `text`: the figures."""

    bars: tuple[tuple[int, float], ...]
    text: str

    @property
    def width(self) -> int:
        """Width of the drawing."""
        return BARS * STEP

    @property
    def height(self) -> int:
        """Height of the drawing, and of the highest bar."""
        return HEIGHT


def of_groups(services: Services, rows: Sequence[GroupRow]) -> Mapping[int, Sparkline]:
    """The sparkline of each group."""
    if not rows:
        return {}
    now = services.clock.now()
    with services.reading() as reading:
        hours = reading.groups.hours_of([row.id for row in rows], now - PERIOD)
    return {group_id: sparkline(found, now) for group_id, found in hours.items()}


def sparkline(hours: Iterable[tuple[datetime, int]], now: datetime) -> Sparkline:
    """The sparkline of hours with failures. An hour counts where it begins; the first and current ones are partial."""
    counts = [0] * BARS
    for hour, failures in hours:
        bar = BARS - 1 - int((now - hour) / _BAR)
        if 0 <= bar < BARS:
            counts[bar] += failures
    most = max(1, *counts)
    drawn = tuple((bar * STEP, round(max(1.5, HEIGHT * count / most), 1)) for bar, count in enumerate(counts) if count)
    days = [sum(counts[begin : begin + PER_DAY]) for begin in range(0, BARS, PER_DAY)]
    return Sparkline(drawn, f"failures in each of the last 7 days, oldest first: {', '.join(map(str, days))}")
