"""The charts of the overview: failed jobs and lost GPU-hours over time, stacked by side, with axes and a table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from service.reports.chart import nice
from service.statistics.records import SIDES, PeriodCount
from service.web.pages.charts import figures
from service.web.pages.charts.marks import Mark, places

WIDTH, HEIGHT = 600, 120  # of the drawing, in chart units
GAP = 1.5
MOST_LABELS = 5
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Segment:
    """One side's share of a bar, in chart units."""

    side: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of the period; `title`: its figures in words."""

    x: float
    width: float
    segments: tuple[Segment, ...]
    title: str

    @property
    def paths(self) -> list[tuple[str, str]]:
        """The whole height above and below the bar, `room`, and its segments by side: their outlines as SVG paths."""
        begin, sides = f"M{self.x} ", f"h-{self.width}z"
        room = ("room", f"{begin}0h{self.width}v{HEIGHT}{sides}")
        return [room, *((one.side, f"{begin}{one.y}h{self.width}v{one.height}{sides}") for one in self.segments)]


@dataclass(frozen=True, slots=True)
class Chart:
    """One stacked bar chart. `ticks`: the values of the axis from the top down; `labels`: the times below the bars.

    `marks`: numbers of marks with their x, in chart units.
    """

    name: str
    unit: str
    bars: tuple[Bar, ...]
    ticks: tuple[str, ...]
    labels: tuple[str, ...]
    per: str
    total: float
    data: str
    marks: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class PartRow:
    """A part of the period as a row of the table.

    `at`: its beginning in words; `query`: the address of its period; `by_side`: its failed attempts by side, in words.
    """

    part: PeriodCount
    at: str
    query: str
    by_side: tuple[str, ...]


def charts(parts: Sequence[PeriodCount], zone: ZoneInfo, marks: Sequence[Mark] = ()) -> tuple[Chart, ...]:
    """The charts of failed jobs and of lost GPU-hours; none if the period is empty."""
    if not parts:
        return ()
    jobs = [dict(part.by_side) for part in parts]
    hours = [dict(part.gpu_hours_lost) for part in parts]
    return (
        _chart("Failed attempts", "failed", parts, jobs, zone, marks),
        _chart("GPU-hours lost", "GPU-hours", parts, hours, zone, marks),
    )


def per(parts: Sequence[PeriodCount]) -> str:
    """The length of the parts in words."""
    step = max((part.end - part.begin for part in parts), default=DAY)
    if step > DAY:
        return "week (UTC)"
    if step >= DAY:
        return "day (UTC)"
    return "6 hours" if step > HOUR else "hour" if step > HOUR / 2 else "5 minutes"


def wider(since: datetime, until: datetime, now: datetime) -> dict[str, str] | None:
    """Three times a period around its middle, but not beyond now, as parameters of the page's address.

    None if there is no such period.
    """
    length = until - since
    try:
        end = min(until + length, max(now, until))
        return _span(end - 3 * length, end)
    except OverflowError:
        return None


def part_span(part: PeriodCount) -> dict[str, str]:
    """The period of a bar, as parameters of the page's address."""
    return _span(part.begin, part.end)


def _span(since: datetime, until: datetime) -> dict[str, str]:
    return {name: f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" for name, at in (("since", since), ("until", until))}


def moment(at: datetime, zone: ZoneInfo, step: timedelta) -> str:
    """The beginning of a part, as short as its length allows."""
    if step >= DAY:
        return f"{at:%Y-%m-%d}"
    return f"{at.astimezone(zone):%m-%d %H:%M}"


def short(times: Sequence[str]) -> Iterator[str]:
    """Times of an axis: the date stands only where it is another one than at the label before."""
    before = ""
    for time in times:
        date, _, hour = time.partition(" ")
        yield hour if hour and date == before else time
        before = date


def _chart(
    name: str,
    unit: str,
    parts: Sequence[PeriodCount],
    values: Sequence[Mapping[str, float]],
    zone: ZoneInfo,
    marks: Sequence[Mark],
) -> Chart:
    top = nice(max(sum(value.values()) for value in values))
    width = WIDTH / len(parts)
    step = max(part.end - part.begin for part in parts)
    times = [moment(part.begin, zone, step) for part in parts]
    bars = tuple(
        Bar(
            round(number * width + GAP / 2, 2),
            round(max(width - GAP, 0.5), 2),
            _segments(value, top),
            f"{times[number]}: {_figures(value)}",
        )
        for number, value in enumerate(values)
    )
    every = max(1, -(-len(times) // MOST_LABELS))
    ticks = (top, top / 2, 0.0)
    total = sum(sum(value.values()) for value in values)
    shown = tuple(_tick(tick) for tick in ticks)
    limits = [*(part.begin for part in parts), parts[-1].end]
    placed = places(marks, limits)
    return Chart(
        name,
        unit,
        bars,
        shown,
        tuple(short(times[::every])),
        per(parts),
        total,
        _data(unit, parts, values, zone, placed),
        tuple((number, round(at * width, 2)) for number, at in placed),
    )


def _data(
    unit: str,
    parts: Sequence[PeriodCount],
    values: Sequence[Mapping[str, float]],
    zone: ZoneInfo,
    placed: Sequence[tuple[int, float]],
) -> str:
    """The figures as JSON; days are those of UTC, as in the table."""
    days = max(part.end - part.begin for part in parts) >= DAY
    series = {side: [value.get(side, 0.0) for value in values] for side in SIDES}
    limits = [*(part.begin for part in parts), parts[-1].end]
    return figures.stacked(unit, limits, series, zone=UTC if days else zone, marks=placed)


def _segments(value: Mapping[str, float], top: float) -> tuple[Segment, ...]:
    found, base = [], float(HEIGHT)
    for side in (*SIDES, *sorted(set(value) - set(SIDES))):
        height = HEIGHT * value.get(side, 0) / top
        if height > 0:
            base -= height
            found.append(Segment(side if side in SIDES else "unknown", round(base, 2), round(height, 2)))
    return tuple(found)


def _figures(value: Mapping[str, float]) -> str:
    return ", ".join(f"{side} {_tick(count)}" for side, count in value.items() if count) or "none"


def _tick(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"
