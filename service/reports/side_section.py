"""The report's table of failures by side."""

from collections.abc import Mapping, Sequence

from classifiers import taxonomy
from service.formatting import gpu_hours, number, percent
from service.reports import intervals
from service.reports.comparison import ARROWS, COMPARED, LEAST_WEEKS, Comparison
from service.reports.document import Cell, Section, Table
from service.reports.weekly_facts import WeekCounts

UNKNOWN = "unknown"


def side_order(week: WeekCounts) -> list[str]:
    """The sides in display order; "unknown" only where it occurs."""
    return [*taxonomy.SIDES, *([UNKNOWN] if UNKNOWN in week.by_side else [])]


def sides(this: WeekCounts, changes: Comparison, texts: Mapping[str, str]) -> Section:
    """Failed jobs and attempts by side, with the changes from the weeks before."""
    axes = taxonomy.load()
    rows = []
    for side in side_order(this) if this.failed else ():
        amount = this.by_side.get(side)
        attempts, hours = (0, 0.0) if amount is None else (amount.failures, amount.gpu_hours)
        jobs = _jobs(side, (this,))
        part = intervals.share(jobs, this.jobs.failed)
        published = axes.sides[side].share if side in axes.sides else None
        rows.append(
            (
                Cell(side),
                Cell(number(jobs)),
                Cell(number(attempts)),
                Cell("–" if part is None else f"{percent(part.value)} ({percent(part.low)} to {percent(part.high)})"),
                Cell(f"{_rate(side, (this,))} ({_rate(side, changes.weeks)})"),
                Cell(ARROWS[changes.of(side, "jobs")]),
                Cell(gpu_hours(hours)),
                Cell(ARROWS[changes.of(side, "gpu_hours")]),
                Cell("–" if published is None else percent(published / 100)),
            )
        )
    compared = texts["compared" if changes.made else "uncompared"]
    intro = texts["intro"].format(changes=compared.format(weeks=COMPARED, least=LEAST_WEEKS, made=changes.made))
    columns = (
        *("side", "jobs", "attempts", "share of jobs (95 %)", "per 1,000 jobs (before)"),
        *("change", "GPU-hours", "change in GPU-hours", "paper"),
    )
    numeric = (False, True, True, True, True, False, True, False, True)
    return Section("sides", texts["title"], (intro,), Table(columns, numeric, tuple(rows)), texts["empty"])


def _jobs(side: str, weeks: Sequence[WeekCounts]) -> int:
    return sum(one.jobs for week in weeks for one in week.jobs.clusters if one.side == side)


def _rate(side: str, weeks: Sequence[WeekCounts]) -> str:
    finished = sum(week.jobs.finished for week in weeks)
    return number(1_000 * _jobs(side, weeks) / finished, 1) if finished else "–"
