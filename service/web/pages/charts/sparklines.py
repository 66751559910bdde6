"""Sparklines: small bars with the same figures as text, of groups (the last seven days) and of the tiles' period."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from service import formatting
from service.groups.records import GroupRow
from service.statistics.records import PeriodCount
from service.web.services import Services

PERIOD = timedelta(days=7)
PER_DAY = 4
BARS = 7 * PER_DAY
HEIGHT = 16  # of the drawing; a bar is three units wide with a gap of one
STEP = 4
_BAR = PERIOD / BARS


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Bars, the latest on the right. `bars`: their x and height, in units; `text`: the figures; `most`: the highest."""

    bars: tuple[tuple[int, float], ...]
    text: str
    width: int = BARS * STEP
    most: int = 0

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
    days = [sum(counts[begin : begin + PER_DAY]) for begin in range(0, BARS, PER_DAY)]
    return Sparkline(_drawn(counts), f"failures in each of the last 7 days, oldest first: {', '.join(map(str, days))}")


def daily(times: Iterable[datetime], now: datetime, days: int) -> Sparkline:
    """The sparkline of failures by spans of 24 hours before now."""
    counts = [0] * days
    for at in times:
        before = int((now - at) / timedelta(days=1))
        if 0 <= before < days:
            counts[days - 1 - before] += 1
    text = f"failures in each of the last {days} days, oldest first: {', '.join(map(str, counts))}"
    return Sparkline(_drawn(counts), text, days * STEP, max(counts))


def of_period(parts: Sequence[PeriodCount]) -> Mapping[str, Sparkline]:
    """The sparklines of a period: failed jobs and lost GPU-hours of its parts."""
    if not parts:
        return {}
    failed = [part.failed for part in parts]
    hours = [sum(part.gpu_hours_lost.values()) for part in parts]
    width = len(parts) * STEP
    return {
        "failed": Sparkline(_drawn(failed), f"failed attempts over time, {max(failed)} at most", width),
        "gpu_hours": Sparkline(
            _drawn(hours), f"GPU-hours lost over time, {formatting.gpu_hours(max(hours))} at most", width
        ),
    }


def _drawn(values: Sequence[float]) -> tuple[tuple[int, float], ...]:
    """Bars of the values above zero; even the lowest can be seen."""
    most = max(values) or 1
    return tuple((at * STEP, round(max(1.5, HEIGHT * value / most), 1)) for at, value in enumerate(values) if value)
