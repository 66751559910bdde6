"""Builds a report from facts. All figures are formatted here; the renderers only lay them out."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from classifiers import taxonomy
from service.formatting import duration, gpu_hours, number, percent
from service.reports import breakdowns, intervals, top_actions
from service.reports.document import Cell, Point, Report, Section, Table
from service.reports.weekly_facts import Facts, GroupFacts, WeekCounts

COMPARED = 4  # previous weeks that a change is measured against
QUIET_DAYS = 14  # a group without failures for so long that fails again has regressed
LISTED = 10
ARROWS = {"up": "▲ more", "down": "▼ less", None: ""}
UNKNOWN = "unknown"


@cache
def wording() -> Mapping[str, Any]:
    """The texts of wording.toml."""
    return tomllib.loads(files("service.reports").joinpath("wording.toml").read_text(encoding="utf-8"))


def build(facts: Facts) -> Report:
    """The report of a week. The same facts give the same report."""
    this, before = facts.weeks[-1], facts.weeks[-1 - COMPARED : -1]
    before = tuple(week for week in before if week.finished)
    zone = ZoneInfo(facts.zone)
    made = f"{facts.now.astimezone(zone):%Y-%m-%d %H:%M %Z}"
    texts = wording()["title"]
    return Report(
        week=facts.week,
        title=texts["week"].format(week=facts.week),
        subtitle=texts["span"].format(
            since=f"{facts.since.astimezone(zone):%Y-%m-%d %H:%M}",
            until=f"{facts.until.astimezone(zone):%Y-%m-%d %H:%M}",
            zone=facts.zone,
            made=made,
        ),
        sentences=tuple(_sentences(facts, this, before, made)),
        chart=_chart(facts.weeks),
        todo=top_actions.top_actions_of(facts, wording()["todo"]),
        trust=tuple(_trust(facts)),
        sections=(
            _sides(this, before),
            breakdowns.causes(facts, this.failed, wording()["section"]["causes"]),
            breakdowns.categories(facts, wording()["section"]["categories"]),
            breakdowns.symptoms(facts, wording()["section"]["symptoms"]),
            breakdowns.mitigations(facts, wording()["section"]["mitigations"]),
            _group_section("new", [one for one in facts.groups if one.last_before is None]),
            _group_section("regressed", [one for one in facts.groups if _came_back(one, facts)]),
            _group_section("costliest", [one for one in facts.groups if one.amount.gpu_hours > 0]),
            _nodes(facts),
            _incidents(facts, zone),
            _automation(facts),
            _group_section("environment", facts.environment),
        ),
        figures=_figures(facts, this),
    )


def _sentences(facts: Facts, this: WeekCounts, before: Sequence[WeekCounts], made: str) -> Iterable[str]:
    texts = wording()["sentence"]
    if facts.now < facts.until:
        yield wording()["title"]["unfinished"].format(made=made)
    rate = intervals.share(this.failed, this.finished)
    if rate is None:
        yield texts["nothing"]
        return
    yield texts["happened"].format(
        failed=number(this.failed),
        finished=number(this.finished),
        rate=percent(rate.value),
        low=percent(rate.low),
        high=percent(rate.high),
    )
    pooled = intervals.share(sum(week.failed for week in before), sum(week.finished for week in before))
    if pooled is None:
        yield texts["alone"]
    else:
        direction = intervals.change(rate, pooled, [week.failed / week.finished for week in before])
        yield texts[direction or "same"].format(weeks=len(before), before=percent(pooled.value))
    if this.failed == 0:
        return
    lost = intervals.total(this.lost.gpu_hours, this.lost.squares)
    if lost.value <= 0:
        yield texts["free"]
        return
    side, most = max(this.by_side.items(), key=lambda item: item[1].gpu_hours)
    yield texts["cost"].format(
        lost=gpu_hours(lost.value),
        low=gpu_hours(lost.low),
        high=gpu_hours(lost.high),
        side=side,
        share=percent(most.gpu_hours / lost.value, 0),
    )
    changes = [
        f"{side} {ARROWS[direction]}" for side in _side_order(this) if (direction := _hours_change(side, this, before))
    ]
    if changes:
        yield texts["sides_changed"].format(changes=", ".join(changes))


def _side_order(this: WeekCounts) -> list[str]:
    return [*taxonomy.SIDES, *([UNKNOWN] if UNKNOWN in this.by_side else [])]


def _hours_change(side: str, this: WeekCounts, before: Sequence[WeekCounts]) -> intervals.Direction | None:
    """The direction of a significant change of a side's GPU-hours."""
    if not before:
        return None
    now = this.by_side.get(side)
    earlier = [week.by_side.get(side) for week in before]
    hours = [0.0 if one is None else one.gpu_hours for one in earlier]
    squares = sum(one.squares for one in earlier if one is not None)
    return intervals.change(
        intervals.total(0.0 if now is None else now.gpu_hours, 0.0 if now is None else now.squares),
        intervals.total(sum(hours) / len(before), squares / len(before) ** 2),
        hours,
    )


def _chart(weeks: Sequence[WeekCounts]) -> tuple[Point, ...]:
    """The weeks from the first one with data; always including the week of the report."""
    first = next((number for number, week in enumerate(weeks) if week.finished), len(weeks) - 1)
    return tuple(_point(week) for week in weeks[first:])


def _point(week: WeekCounts) -> Point:
    lost = intervals.total(week.lost.gpu_hours, week.lost.squares)
    return Point(
        week.name,
        {side: round(amount.gpu_hours, 2) for side, amount in sorted(week.by_side.items())},
        round(lost.value, 2),
        round(lost.low, 2),
        round(lost.high, 2),
    )


def _sides(this: WeekCounts, before: Sequence[WeekCounts]) -> Section:
    axes = taxonomy.load()
    rows = []
    for side in _side_order(this) if this.failed else ():
        amount = this.by_side.get(side)
        failures, hours = (0, 0.0) if amount is None else (amount.failures, amount.gpu_hours)
        part = intervals.share(failures, this.failed)
        earlier = [week for week in before if week.failed]
        pooled = intervals.share(
            sum(week.by_side[side].failures for week in earlier if side in week.by_side),
            sum(week.failed for week in earlier),
        )
        shares = [week.by_side[side].failures / week.failed if side in week.by_side else 0.0 for week in earlier]
        published = axes.sides[side].share if side in axes.sides else None
        rows.append(
            (
                Cell(side),
                Cell(number(failures)),
                Cell("–" if part is None else f"{percent(part.value)} ({percent(part.low)} to {percent(part.high)})"),
                Cell("–" if pooled is None else percent(pooled.value)),
                Cell(ARROWS[intervals.change(part, pooled, shares)]),
                Cell(gpu_hours(hours)),
                Cell(ARROWS[_hours_change(side, this, before)]),
                Cell("–" if published is None else percent(published / 100)),
            )
        )
    texts = wording()["section"]["sides"]
    return Section(
        "sides",
        texts["title"],
        (texts["intro"].format(weeks=len(before)),),
        Table(
            ("side", "jobs", "share (95 %)", "before", "change", "GPU-hours", "change in GPU-hours", "paper"),
            (False, True, True, True, False, True, False, True),
            tuple(rows),
        ),
        texts["empty"],
    )


def _came_back(group: GroupFacts, facts: Facts) -> bool:
    return group.last_before is not None and (facts.since - group.last_before).days >= QUIET_DAYS


def _group_section(key: str, groups: Iterable[GroupFacts]) -> Section:
    texts = wording()["section"][key]
    rows = tuple(
        (
            Cell(one.headline or one.fingerprint, f"/failures?group={quote(one.fingerprint, safe='')}"),
            Cell(one.side),
            Cell(breakdowns.title(one.cause)),
            Cell(number(one.amount.failures)),
            Cell(number(one.users)),
            Cell(gpu_hours(one.amount.gpu_hours)),
            Cell(f"{one.first_seen:%Y-%m-%d}"),
        )
        for one in list(groups)[:LISTED]
    )
    intro = texts.get("intro", "").format(quiet=QUIET_DAYS)
    return Section(
        key,
        texts["title"],
        (intro,) if intro else (),
        Table(
            ("first evidence line", "side", "cause", "jobs", "users", "GPU-hours", "first seen"),
            (False, False, False, True, True, True, False),
            rows,
        ),
        texts["empty"],
    )


def _nodes(facts: Facts) -> Section:
    texts = wording()["section"]["nodes"]
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
        texts["title"],
        (texts["intro"],),
        Table(("node", "times the fleet's rate (95 %)", "failures", "hours of work"), (False, True, True, True), rows),
        texts["empty"],
    )


def _incidents(facts: Facts, zone: ZoneInfo) -> Section:
    texts = wording()["section"]["incidents"]
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
    return Section("incidents", texts["title"], (), table, texts["empty"])


def _automation(facts: Facts) -> Section:
    texts = wording()["section"]["automation"]
    done = facts.automation
    rows = [
        (Cell(f"requests {state.replace('_', ' ')}"), Cell(number(count))) for state, count in done.by_state.items()
    ]
    rows += [
        (Cell(f"outcome: {kind.replace('_', ' ')}"), Cell(number(count))) for kind, count in done.by_outcome.items()
    ]
    if rows:
        rows.append((Cell("GPU-hours rescued"), Cell(gpu_hours(done.rescued_gpu_hours))))
        rows.append((Cell("GPU-hours wasted"), Cell(gpu_hours(done.wasted_gpu_hours))))
    return Section(
        "automation",
        texts["title"],
        (texts["intro"].format(retracted=number(done.retracted)),) if rows else (),
        Table(("what", "count"), (False, True), tuple(rows)),
        texts["empty"],
    )


def _trust(facts: Facts) -> Iterable[tuple[str, str]]:
    texts, quality = wording()["trust"], facts.quality
    right = intervals.share(quality.audited_right, quality.audited)
    text = (
        texts["unaudited"]
        if right is None
        else texts["audited"].format(
            right=number(quality.audited_right),
            audited=number(quality.audited),
            share=percent(right.value),
            low=percent(right.low),
            high=percent(right.high),
        )
    )
    if quality.expected_right is not None:
        text += "; " + texts["expected"].format(expected=percent(quality.expected_right))
    yield "audited accuracy", text
    of = {"diagnosed": number(quality.diagnosed)}
    for label, count in (("abstained", quality.abstained), ("contested", quality.contested)):
        part = count / quality.diagnosed if quality.diagnosed else None
        yield label, texts[label].format(count=number(count), share=percent(part), **of)
    yield "revised", texts["corrected"].format(corrected=number(quality.corrected), revised=number(quality.revised))
    if quality.seconds_to_verdict is not None:
        median, high = (duration(seconds) if seconds >= 1 else "under 1 s" for seconds in quality.seconds_to_verdict)
        yield "time to verdict", texts["latency"].format(median=median, high=high)
    hours = round((min(facts.until, max(facts.now, facts.since)) - facts.since).total_seconds() / 3600)
    silent = len(quality.silent_hours)
    yield (
        "hours without data",
        texts["silent"].format(count=number(silent), hours=number(hours)) if silent else texts["unsilent"],
    )


def _figures(facts: Facts, this: WeekCounts) -> dict[str, float | int | None]:
    quality, done = facts.quality, facts.automation
    return {
        "finished": this.finished,
        "failed": this.failed,
        "failure_rate": this.failed / this.finished if this.finished else None,
        "gpu_hours_lost": round(this.lost.gpu_hours, 4),
        **{f"failed_{side}": amount.failures for side, amount in sorted(this.by_side.items())},
        **{f"gpu_hours_lost_{side}": round(amount.gpu_hours, 4) for side, amount in sorted(this.by_side.items())},
        **breakdowns.dimensions(facts.categories),
        "diagnosed": quality.diagnosed,
        "abstained": quality.abstained,
        "contested": quality.contested,
        "corrected": quality.corrected,
        "revised": quality.revised,
        "audited": quality.audited,
        "audited_right": quality.audited_right,
        "silent_hours": len(quality.silent_hours),
        "gpu_hours_rescued": round(done.rescued_gpu_hours, 4),
        "gpu_hours_wasted": round(done.wasted_gpu_hours, 4),
    }
