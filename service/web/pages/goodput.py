"""GET /goodput: goodput and reliability figures with their definitions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from itertools import pairwise
from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from service import formatting
from service.goodput import definitions
from service.goodput.records import ComparedGoodput, Goodput, TrendPart
from service.reports.chart import nice, share_floor
from service.statistics.records import SIDES
from service.web import goodput_views
from service.web.auth import READ
from service.web.pages.charts import figures, marks
from service.web.pages.forms import OverviewScope, overview_scope, wrong_times
from service.web.pages.templating import render
from service.web.services import InjectedServices
from service.web.views import FailureQuery, default_since

router = APIRouter()
CHART = (480, 90)  # width and height of the chart in chart units
APART = ("preempted", "cancelled")
LEAST_POINTS = 0.05  # a smaller change of goodput is shown as 0.0
LEAST_OF = 20  # a period with less than this part of the GPU-hours says nothing about the next one, as on the overview
REASONS = 3


@dataclass(frozen=True, slots=True)
class Comparison:
    """A period beside the one of equal length before it.

    Args:
        since: the begin of the period before.
        goodput_before: goodput of the period before, 0..1.
        goodput: goodput of the period, 0..1; None without GPU-hours.
        rows: a name and its GPU-hours before and now.
        effects: by what GPU-hours were lost to, how many percentage points of goodput its change gave (positive) or
            cost; their sum is the change of goodput. Largest first; empty without GPU-hours.
    """

    since: datetime
    goodput_before: float | None
    goodput: float | None
    rows: tuple[tuple[str, float, float], ...]
    effects: Mapping[str, float]

    @property
    def points(self) -> float:
        """The change of goodput in percentage points."""
        return sum(self.effects.values())

    @property
    def reasons(self) -> tuple[tuple[str, float], ...]:
        """The largest effects in the direction of the change, at most three."""
        up = self.points > 0
        noted = ((name, points) for name, points in self.effects.items() if (points > 0) is up)
        return tuple((name, points) for name, points in noted if abs(points) >= LEAST_POINTS)[:REASONS]


@router.get("/goodput", dependencies=[READ])
def goodput(
    request: Request, services: InjectedServices, scope: Annotated[OverviewScope, Depends(overview_scope)]
) -> HTMLResponse:
    """The figures of a period and scope."""
    problems = wrong_times(services, FailureQuery(since=scope.since, until=scope.until))
    if problems:
        scope = replace(scope, since=None, until=None)
    since = scope.since or default_since(services, scope.until, goodput_views.DEFAULT_RANGE)
    both = goodput_views.goodput(services, since, scope.until, scope.jobs())
    found = both.figures
    top = chart_top(found)
    period_marks = marks.find(services, found.since, found.until, cluster=scope.cluster)
    context = {
        "found": found,
        "cost": goodput_views.cost(services, found),
        "define": definitions.load().figures,
        "categories": definitions.load().categories,
        "bars": bars(found, top),
        "chart": CHART,
        "chart_top": top,
        "chart_kinds": (*SIDES, *APART),
        "marks": period_marks,
        "lost_data": lost_data(found, services.zone, period_marks),
        "step": "day" if goodput_views.step(found.since, found.until) <= timedelta(days=1) else "week",
        "partial": partial(found, services.zone),
        "trend": trend(found, services.zone, period_marks),
        "compared": comparison(both),
        "least_points": LEAST_POINTS,
        "since": since,
        "scope": scope.where(),
        "span": {"since": since, "until": scope.until},
        "problems": problems,
    }
    return render(request, "goodput.html", context, status=422 if problems else 200)


def comparison(both: ComparedGoodput) -> Comparison | None:
    """The rows of the comparison with the period of equal length before; None if too little ended in it."""
    before, now = both.before, both.now
    if not before.held or before.held * LEAST_OF < now.held:
        return None
    amounts = [_amounts(part) for part in (before, now)]
    rows = tuple((name, amounts[0][name], amounts[1][name]) for name in amounts[1])
    return Comparison(before.since, before.goodput, now.goodput, rows, _effects(before, now))


def _effects(before: TrendPart, now: TrendPart) -> dict[str, float]:
    """By what GPU-hours were lost to, its effect on goodput in percentage points; the largest first."""
    if not now.held or not before.held:
        return {}
    earlier, later = _lost(before), _lost(now)
    changes = {
        name: 100 * (earlier.get(name, 0.0) / before.held - later.get(name, 0.0) / now.held)
        for name in (*SIDES, *APART)
    }
    return dict(sorted(changes.items(), key=lambda one: -abs(one[1])))


def _amounts(part: TrendPart) -> dict[str, float]:
    """GPU-hours by name; the sides that lost none are left out of neither period."""
    lost = {f"lost, {side}": part.lost_by_side.get(side, 0.0) for side in SIDES}
    preempted = {"lost, preempted": part.lost_to_preemption, "lost, cancelled": part.lost_to_cancellation}
    return {"held": part.held, "delivered": part.delivered, **lost, **preempted}


def _lost(part: TrendPart) -> dict[str, float]:
    """GPU-hours that a part of the period lost, by side, preemption and cancellation."""
    return {**part.lost_by_side, "preempted": part.lost_to_preemption, "cancelled": part.lost_to_cancellation}


def chart_top(found: Goodput) -> float:
    """The GPU-hours at the top of the chart."""
    return nice(max((sum(_lost(one).values()) for one in found.trend), default=0.0))


def lost_data(found: Goodput, zone: ZoneInfo, marked: Sequence[marks.Mark]) -> str:
    """The chart of GPU-hours lost as JSON."""
    amounts = [_lost(one) for one in found.trend]
    series = {kind: [amount.get(kind, 0.0) for amount in amounts] for kind in (*SIDES, *APART)}
    limits = [*(one.since for one in found.trend), found.until]
    placed = marks.places(marked, limits)
    return figures.stacked("GPU-hours", limits, series, zone=zone, marks=placed, partial=partial(found, zone))


def partial(found: Goodput, zone: ZoneInfo) -> tuple[int, ...]:
    """The numbers of the parts that are no whole day, or week of a long period: the first and last may be."""
    edges = [one.since for one in found.trend] + [found.until]
    full = goodput_views.step(found.since, found.until)
    return tuple(
        number
        for number, (begin, end) in enumerate(pairwise(edges))
        if _days(end, zone) - _days(begin, zone) < full or _begins_later(begin, zone)
    )


def _days(at: datetime, zone: ZoneInfo) -> timedelta:
    """Whole days of the zone's calendar before a time."""
    return timedelta(days=at.astimezone(zone).date().toordinal())


def _begins_later(at: datetime, zone: ZoneInfo) -> bool:
    """Whether a time is not the first of its day, which is later than midnight if the clock is put forward then."""
    return at > datetime.combine(at.astimezone(zone).date(), time(), zone)


def trend(found: Goodput, zone: ZoneInfo, marked: Sequence[marks.Mark]) -> dict[str, str]:
    """The chart of goodput over time: `data` as JSON, `points` of the server's drawing, and its lowest share."""
    known = [(one.since, one.goodput) for one in found.trend if one.goodput is not None]
    if len(known) < 2:  # noqa: PLR2004 - a line has two ends
        return {}
    width, height = CHART
    low = share_floor(share for _, share in known)
    span = (known[-1][0] - known[0][0]).total_seconds()
    points = (
        f"{width * (at - known[0][0]).total_seconds() / span:.1f},{height * (1 - share) / (1 - low):.1f}"
        for at, share in known
    )
    placed = [(mark.number, figures.shown_seconds(mark.at, zone)) for mark in marked if mark.drawn]
    series = {"goodput": [share for _, share in known]}
    times = [figures.shown_seconds(at, zone) for at, _ in known]
    data = figures.line(times, series, time=True, marks=placed)
    return {"data": data, "points": " ".join(points), "low": formatting.percent(low, 0)}


def bars(found: Goodput, top: float) -> list[dict[str, object]]:
    """One bar for each part of the period: GPU-hours lost by side, then to preemption and cancellation.

    Args:
        found: the figures of the period.
        top: the GPU-hours at the top of the chart.
    """
    amounts = [_lost(one) for one in found.trend]
    width, height = CHART
    step = width / max(len(amounts), 1)
    made = []
    for number, (part, amount) in enumerate(zip(found.trend, amounts, strict=True)):
        base, boxes = float(height), []
        for kind in (*SIDES, *APART):
            tall = height * amount.get(kind, 0.0) / top
            base -= tall
            if tall > 0:
                boxes.append({"kind": kind, "y": round(base, 2), "height": round(tall, 2)})
        left, wide = round(number * step + step * 0.1, 2), round(step * 0.8, 2)
        made.append({"part": part, "amount": amount, "x": left, "width": wide, "boxes": boxes})
    return made
