"""The chapter of the report about goodput and reliability: the same figures as the page /goodput."""

from collections.abc import Iterable, Mapping, Sequence
from zoneinfo import ZoneInfo

from classifiers import taxonomy
from service.failures.records import COUNTED_AS_FAILED
from service.formatting import duration, gpu_hours, number, percent, significant
from service.goodput import definitions
from service.goodput.records import Estimate, Goodput, Interruption, Quantiles, TrendPart
from service.reports import scope
from service.reports.document import Cell, GoodputPoint, Section, Table

LISTED = 10


def sections(
    found: Goodput, trend: Sequence[TrendPart], zone: ZoneInfo, texts: Mapping[str, Mapping[str, str]]
) -> Iterable[Section]:
    """The sections of the chapter."""
    define = definitions.load().figures
    page = scope.link("/goodput", found.scope, found.since, found.until)
    rows = tuple((Cell(define[key].title, f"{page}#{key}"), Cell(value)) for key, value in _values(found))
    yield Section(
        "goodput",
        texts["goodput"]["title"],
        (texts["goodput"]["intro"],),
        Table(("figure", "value"), (False, False), rows if found.attempts else ()),
        texts["goodput"]["empty"],
    )
    yield _trend(trend, zone, texts["goodput_trend"])
    yield _sizes(found, texts["mttf"])
    yield _interruptions(found, texts["interruptions"])


def chart_points(trend: Sequence[TrendPart], zone: ZoneInfo) -> tuple[GoodputPoint, ...]:
    """One point for each week of the trend, from the first with GPU-hours; none if no week has any."""
    first = next((number for number, one in enumerate(trend) if one.held), len(trend))
    return tuple(GoodputPoint(_week(one, zone), round(one.held, 4), one.goodput) for one in trend[first:])


def raw_figures(found: Goodput) -> dict[str, float | int | None]:
    """The figures as numbers, for programs."""
    rate = found.failures_per_1000_node_days
    return {
        "gpu_hours_held": round(found.held, 4),
        "gpu_hours_delivered": round(found.delivered, 4),
        "gpu_hours_preempted": round(found.lost_to_preemption, 4),
        "gpu_hours_cancelled": round(found.lost_to_cancellation, 4),
        "goodput": _rounded(found.goodput),
        "ettr": _rounded(found.ettr),
        "restarts_per_run": _rounded(found.restarts_mean),
        "seconds_to_restart": found.times.to_restart.median,
        "hardware_failures_per_1000_node_days": None if rate is None else _rounded(rate.value),
        "incidents_opened": found.incidents.opened,
    }


def _values(found: Goodput) -> Iterable[tuple[str, str]]:
    for key in ("held", "delivered", "lost", "lost_to_preemption", "lost_to_cancellation"):
        hours = getattr(found, key)
        share = f" ({percent(hours / found.held)})" if found.held and key != "held" else ""
        yield key, gpu_hours(hours) + share
    yield "ettr", percent(found.ettr)
    yield "ettr_long", f"{percent(found.ettr_long)} of {number(found.long_runs)} runs"
    yield "restarts", _restarts(found)
    for key in ("to_restart", "to_verdict", "hang"):
        yield key, _times(getattr(found.times, key))
    yield "hardware_failures", f"{number(found.hardware_failures)} in {number(found.node_days, 1)} node-days"
    yield "failures_per_1000_node_days", _interval(found.failures_per_1000_node_days)
    incidents = found.incidents
    yield (
        "to_close",
        f"{number(incidents.opened)} opened, {number(incidents.closed)} closed: {_times(incidents.to_close)}",
    )


def _restarts(found: Goodput) -> str:
    if found.restarts_mean is None:
        return "–"
    return f"{number(found.restarts_mean, 2)} on average, {number(found.restarts_most)} at most"


def _times(one: Quantiles) -> str:
    if one.median is None or one.high is None:
        return "no data"
    return f"median {duration(one.median)}, 95th percentile {duration(one.high)} ({number(one.count)})"


def _interval(one: Estimate | None) -> str:
    if one is None:
        return "–"
    high = "∞" if one.high is None else significant(one.high)
    return f"{significant(one.value)} ({significant(one.low)} to {high})"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _week(one: TrendPart, zone: ZoneInfo) -> str:
    return f"{one.since.astimezone(zone):%G-W%V}"


def _trend(trend: Sequence[TrendPart], zone: ZoneInfo, texts: Mapping[str, str]) -> Section:
    rows = tuple(
        (
            Cell(_week(one, zone)),
            Cell(gpu_hours(one.held)),
            Cell(percent(one.goodput)),
            Cell(gpu_hours(sum(one.lost_by_side.values()))),
            Cell(gpu_hours(one.lost_to_preemption)),
            Cell(gpu_hours(one.lost_to_cancellation)),
        )
        for one in trend
        if one.held
    )
    columns = ("week", "GPU-hours", "goodput", "failures", "preempted", "cancelled")
    return Section(
        "goodput_trend",
        texts["title"],
        (texts["intro"],),
        Table(columns, (False, *(True for _ in columns[1:])), rows),
        texts["empty"],
    )


def _sizes(found: Goodput, texts: Mapping[str, str]) -> Section:
    rows = [
        (
            Cell(number(one.gpus)),
            Cell(number(one.job_hours)),
            Cell(number(one.failures)),
            Cell(_interval(one.mttf_hours)),
            Cell(_interval(one.fitted_hours)),
        )
        for one in found.sizes
    ]
    rows += [
        (Cell(f"{number(one.gpus)} (projected)"), Cell("–"), Cell("–"), Cell("–"), Cell(_interval(one.mttf_hours)))
        for one in found.projections
    ]
    columns = ("GPUs up to", "job-hours", "failures", "MTTF in hours (95 %)", "fitted (95 %)")
    table = Table(columns, tuple(True for _ in columns), tuple(rows))
    return Section("mttf", texts["title"], (texts["intro"],), table, texts["empty"])


def _failures(found: Goodput, one: Interruption) -> str:
    which = {"side": one.side, "cause": one.cause, "abstained": "false", "status": COUNTED_AS_FAILED}
    return scope.link("/failures", found.scope, found.since, found.until, **which)


def _interruptions(found: Goodput, texts: Mapping[str, str]) -> Section:
    rows = tuple(
        (
            Cell(taxonomy.load().title_of(one.cause), _failures(found, one)),
            Cell(one.side),
            Cell(number(one.count)),
            Cell(percent(one.share)),
            Cell(gpu_hours(one.gpu_hours)),
        )
        for one in found.interruptions[:LISTED]
    )
    left = len(found.interruptions) - LISTED
    more = (texts["more"].format(more=number(left)),) if left > 0 else ()
    columns = ("cause", "side", "count", "share", "GPU-hours")
    table = Table(columns, (False, False, True, True, True), rows)
    return Section("interruptions", texts["title"], (texts["intro"], *more), table, texts["empty"])
