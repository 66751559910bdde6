"""Sections of the report: failures by side, lists of groups, suspect nodes, incidents, automatic resubmission."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from classifiers import taxonomy
from service.formatting import duration, gpu_hours, number, percent
from service.reports import intervals, top_actions
from service.reports.comparison import ARROWS, COMPARED, LEAST_WEEKS, Comparison
from service.reports.document import Cell, Section, Table
from service.reports.weekly_facts import Facts, GroupFacts, WeekCounts
from service.statistics.records import UNKNOWN

QUIET_DAYS = 14  # a group without failures for so long that fails again has regressed
LISTED = 10
Texts = Mapping[str, Any]  # of wording.toml


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


def came_back(group: GroupFacts, facts: Facts) -> bool:
    """Whether a group regressed: a person resolved it, or it was quiet for long, before it failed in the week."""
    if group.last_before is None:
        return False
    return group.returned or (facts.since - group.last_before).days >= QUIET_DAYS


def groups(key: str, found: Sequence[GroupFacts], facts: Facts, texts: Texts) -> Section:
    """A list of groups; the section of the texts is `key`."""
    zone, own = ZoneInfo(facts.zone), texts["section"][key]
    rows = tuple(
        (
            Cell(one.headline or one.fingerprint, top_actions.group_link(one.fingerprint, facts.scope)),
            Cell(one.side),
            Cell(_cause(one)),
            Cell(number(one.amount.failures)),
            Cell(number(one.users)),
            Cell(gpu_hours(one.amount.gpu_hours)),
            Cell(f"{one.first_seen.astimezone(zone):%Y-%m-%d}"),
        )
        for one in found[:LISTED]
    )
    intro = own.get("intro", "").format(quiet=QUIET_DAYS)
    return Section(
        key,
        own["title"],
        tuple(filter(None, (intro, _more(len(found), texts, cut=facts.groups_cut)))),
        Table(
            ("what happened", "side", "cause", "attempts", "users", "GPU-hours", "first seen"),
            (False, False, False, True, True, True, False),
            rows,
        ),
        own["empty"],
    )


def _cause(group: GroupFacts) -> str:
    """The cause of a group; one whose side is not decided has only a possible one."""
    title = taxonomy.load().title_of(group.cause)
    return f"undecided, possibly {title}" if group.side == UNKNOWN and group.cause != UNKNOWN else title


def _more(found: int, texts: Texts, *, cut: bool = False) -> str:
    """How many entries a list leaves out; `cut`: there may be others that were not read."""
    if found <= LISTED:
        return ""
    text: str = texts["list"]["at_least" if cut else "more"]
    return text.format(listed=LISTED, found=number(found))


def nodes(facts: Facts, texts: Texts) -> Section:
    """Nodes that fail significantly more often than the fleet."""
    own = texts["section"]["nodes"]
    rows = tuple(
        (
            Cell(f"{one.cluster} / {one.node}", f"/nodes/{quote(one.cluster, safe='')}/{quote(one.node, safe='')}"),
            Cell(f"{number(one.ratio, 1)} ({number(one.low, 1)} to {number(one.high, 1)})"),
            Cell(number(one.failures, 1)),
            Cell(number(one.exposure_h)),
        )
        for one in facts.nodes[:LISTED]
    )
    return Section(
        "nodes",
        own["title"],
        tuple(filter(None, (own["intro"], _more(len(facts.nodes), texts)))),
        Table(
            ("node", "times the fleet's rate (90 %)", "counted failures", "hours of work"),
            (False, True, True, True),
            rows,
        ),
        own["empty"],
    )


def incidents(facts: Facts, texts: Texts) -> Section:
    """Incidents that were open in the week."""
    zone = ZoneInfo(facts.zone)
    own = texts["section"]["incidents"]
    rows = tuple(
        (
            Cell(f"I-{one.id} {one.title}", f"/incidents/{one.id}"),
            Cell(number(one.jobs)),
            Cell(f"{one.opened_at.astimezone(zone):%Y-%m-%d %H:%M}"),
            Cell("open" if one.closed_at is None else duration((one.closed_at - one.opened_at).total_seconds())),
        )
        for one in facts.incidents[:LISTED]
    )
    table = Table(("incident", "jobs", "opened", "lasted"), (False, True, False, True), rows)
    return Section("incidents", own["title"], (), table, own["empty"])


def automation(facts: Facts, texts: Texts) -> Section:
    """What automatic resubmission did."""
    own = texts["section"]["automation"]
    done = facts.automation
    rows = [
        (Cell(f"requests {own['state'].get(state, state)}"), Cell(number(count)))
        for state, count in done.by_state.items()
    ]
    rows += [
        (Cell(f"outcome: the new run {own['outcome'].get(kind, kind)}"), Cell(number(count)))
        for kind, count in done.by_outcome.items()
    ]
    if rows:
        rows.append((Cell("GPU-hours rescued"), Cell(gpu_hours(done.rescued_gpu_hours))))
        rows.append((Cell("GPU-hours wasted"), Cell(gpu_hours(done.wasted_gpu_hours))))
    return Section(
        "automation",
        own["title"],
        (own["intro"].format(retracted=number(done.retracted)),) if rows else (),
        Table(("what", "count"), (False, True), tuple(rows)),
        own["empty"],
    )
