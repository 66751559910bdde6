"""Builds a report from facts. All figures are formatted here; the renderers only lay them out."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo

from service.formatting import duration, gpu_hours, number, percent, with_noun
from service.reports import breakdowns, chart, comparison, goodput_section, intervals, scope, sections, top_actions
from service.reports.audit_accuracy import AuditAccuracy
from service.reports.comparison import ALL, Comparison
from service.reports.document import Point, Report, Section
from service.reports.sections import side_order
from service.reports.top_actions import follow_ups
from service.reports.weekly_facts import Facts, WeekCounts
from service.statistics.records import UNKNOWN, Scope

_HALF = 0.5
_LEAST_POINTS = 0.05  # of goodput: a smaller change is shown as 0.0


@cache
def wording() -> Mapping[str, Any]:
    """The texts of wording.toml."""
    return tomllib.loads(files("service.reports").joinpath("wording.toml").read_text(encoding="utf-8"))


def _axis_texts(key: str) -> Mapping[str, str]:
    return {**wording()["section"][key], **wording()["papers"]}


def build(facts: Facts) -> Report:
    """The report of a week. The same facts give the same report."""
    this = facts.weeks[-1]
    changes = comparison.compare(facts.weeks, over=facts.now >= facts.until)
    zone = ZoneInfo(facts.zone)
    made = f"{facts.now.astimezone(zone):%Y-%m-%d %H:%M %Z}"
    texts = wording()["title"]
    return Report(
        week=facts.week,
        title=title(facts.week, facts.scope),
        subtitle=texts["span"].format(
            since=f"{facts.since.astimezone(zone):%Y-%m-%d %H:%M}",
            until=f"{facts.until.astimezone(zone):%Y-%m-%d %H:%M}",
            zone=facts.zone,
            made=made,
        ),
        sentences=tuple(_sentences(facts, this, changes, made)),
        chart=_chart(facts.weeks),
        todo=top_actions.top_actions_of(facts, wording()["todo"]),
        trust=tuple(_trust(facts)),
        sections=(
            sections.sides(this, changes, wording()["section"]["sides"]),
            breakdowns.causes(facts, this.failed, _axis_texts("causes")),
            breakdowns.categories(facts, _axis_texts("categories")),
            breakdowns.symptoms(facts, _axis_texts("symptoms")),
            breakdowns.mitigations(facts, wording()["section"]["mitigations"]),
            sections.groups("new", [one for one in facts.groups if one.last_before is None], facts, wording()),
            sections.groups(
                "regressed", [one for one in facts.groups if sections.came_back(one, facts)], facts, wording()
            ),
            sections.groups("costliest", [one for one in facts.groups if one.amount.gpu_hours > 0], facts, wording()),
            sections.nodes(facts, wording()),
            sections.incidents(facts, wording()),
            sections.automation(facts, wording()),
            sections.groups("environment", facts.environment, facts, wording()),
            *_goodput(facts, zone),
        ),
        figures=_figures(facts, this),
        previous=tuple(follow_ups(facts, wording()["follow_up"])),
        scope=scope.values(facts.scope),
        goodput_chart=() if facts.goodput is None else goodput_section.chart_points(facts.goodput_trend, zone),
    )


def title(week: str, of: Scope) -> str:
    """The title of a report, with its scope."""
    which = scope.words(of)
    return str(wording()["title"]["scope" if which else "week"]).format(week=week, scope=which)


def _goodput(facts: Facts, zone: ZoneInfo) -> Iterable[Section]:
    if facts.goodput is None:
        return ()
    return goodput_section.sections(facts.goodput, facts.goodput_trend, zone, wording()["section"])


def _sentences(facts: Facts, this: WeekCounts, changes: Comparison, made: str) -> Iterable[str]:
    texts = wording()["sentence"]
    if facts.now < facts.until:
        yield wording()["title"]["unfinished"].format(made=made)
    jobs = this.jobs
    rate = intervals.share(jobs.failed, jobs.finished, _design_effect(this))
    if rate is None:
        yield _nothing(facts, texts)
        return
    kind = "happened" if jobs.failed else "none_failed_at_last" if this.failed else "none_failed"
    yield texts[kind].format(
        failed=number(jobs.failed),
        finished=with_noun(jobs.finished, "job"),
        rate=percent(rate.value),
        low=percent(rate.low),
        high=percent(rate.high),
        attempts_failed=number(this.failed),
        attempts=number(this.finished),
    )
    yield _changed(facts, changes)
    if this.failed:
        yield from _cost(facts, this, changes, texts)
    yield from _goodput_sentence(facts, texts)


def _cost(facts: Facts, this: WeekCounts, changes: Comparison, texts: Mapping[str, str]) -> Iterable[str]:
    """What the failures of a week cost, the side that cost most, and the sides that changed."""
    lost = _lost(this)
    if lost.value <= 0:
        yield texts["free"]
        return
    side, most = max(this.by_side.items(), key=lambda item: item[1].gpu_hours)
    part = most.gpu_hours / lost.value
    yield texts["cost" if part < 1 else "cost_of_one_side"].format(
        lost=gpu_hours(lost.value),
        low=gpu_hours(lost.low),
        high=chart.upper_end(lost.value, lost.high),
        part=texts["most" if part > _HALF else "largest"],
        side=texts["undecided"] if side == UNKNOWN else side,
        share=percent(part, 0),
    )
    if facts.price is not None:
        price = facts.price
        yield texts["price"].format(price=number(price.gpu_hour, 2), currency=price.currency, cost=price.of(lost.value))
    moved = [
        f"{side} {comparison.ARROWS[direction]}"
        for side in side_order(this)
        if (direction := changes.of(side, "gpu_hours"))
    ]
    if moved:
        yield texts["sides_changed"].format(changes=", ".join(moved))


def _nothing(facts: Facts, texts: Mapping[str, str]) -> str:
    """Nothing succeeded or failed; jobs may have been cancelled or preempted."""
    ended = 0 if facts.goodput is None else facts.goodput.attempts
    if not ended:
        return texts["nothing"]
    return texts["nothing_finished_one" if ended == 1 else "nothing_finished"].format(ended=number(ended))


def _goodput_sentence(facts: Facts, texts: Mapping[str, str]) -> Iterable[str]:
    """Goodput of the week, its change from the week before, and goodput of the weeks before that."""
    found = facts.goodput
    if found is None or found.goodput is None:
        return
    share, held = percent(found.goodput), gpu_hours(found.held)
    before = facts.goodput_trend[:-1]
    last = before[-1].goodput if before else None
    if last is None:
        yield texts["goodput_alone"].format(share=share, held=held)
    else:
        points = round(100 * found.goodput, 1) - round(100 * last, 1)  # of the shares as shown
        kind = "same" if abs(points) < _LEAST_POINTS else "more" if points > 0 else "less"
        change = texts[f"goodput_{kind}"].format(points=f"{abs(points):.1f}")
        yield texts["goodput"].format(share=share, held=held, change=change, last=percent(last))
    earlier = [percent(one.goodput) for one in reversed(before[:-1]) if one.goodput is not None]
    if earlier:
        yield texts["goodput_earlier"].format(earlier=", ".join(earlier))


def _changed(facts: Facts, changes: Comparison) -> str:
    """The change of the failure rate from the previous weeks, or why it is not compared."""
    texts = wording()["sentence"]
    if not changes.made:
        if facts.now < facts.until:
            return str(texts["not_over"])
        if not comparison.complete(facts.weeks[-1 - comparison.COMPARED :])[-1]:
            return str(texts["incomplete"])
        found = len(changes.weeks)
        weeks = texts["complete" if found == 1 else "complete_many"].format(weeks=with_noun(found, "previous week"))
        return str(texts["too_few" if found else "alone"]).format(found=weeks, least=comparison.LEAST_WEEKS)
    failed = sum(week.jobs.failed for week in changes.weeks)
    finished = sum(week.jobs.finished for week in changes.weeks)
    text: str = texts[changes.of(ALL, "jobs") or "same"]
    return text.format(weeks=len(changes.weeks), before=percent(failed / finished))


def _design_effect(week: WeekCounts) -> float:
    """How much wider clusters make the variance of the number of failed jobs; at least 1."""
    sizes = [sum(one.jobs for one in episode) for episode in comparison.episodes(week.jobs.clusters)]
    return max(sum(size * size for size in sizes) / max(sum(sizes), 1), 1.0)


def _lost(week: WeekCounts) -> intervals.Interval:
    """The GPU-hours lost in a week, with their interval."""
    if week.amounts:
        return intervals.total(week.amounts)
    return intervals.from_sums(week.lost.gpu_hours, week.lost.squares)


def _chart(weeks: Sequence[WeekCounts]) -> tuple[Point, ...]:
    """The weeks from the first one with data; always including the week of the report."""
    first = next((number for number, week in enumerate(weeks) if week.finished), len(weeks) - 1)
    return tuple(_point(week) for week in weeks[first:])


def _point(week: WeekCounts) -> Point:
    lost = _lost(week)
    return Point(
        week.name,
        {side: round(amount.gpu_hours, 2) for side, amount in sorted(week.by_side.items())},
        round(lost.value, 2),
        round(lost.low, 2),
        round(lost.high, 2),
    )


def _audited(audit: AuditAccuracy | None) -> str:
    """The accuracy of audits in words; without one, that it is unknown."""
    texts = wording()["trust"]
    if audit is None or audit.side is None or audit.cause is None:
        return str(texts["unaudited"])
    text: str = texts["audited"].format(
        right=number(audit.side_right),
        audited=with_noun(audit.answered, "audited verdict"),
        share=percent(audit.side.value),
        low=percent(audit.side.low),
        high=percent(audit.side.high),
        cause=percent(audit.cause.value),
        cause_low=percent(audit.cause.low),
        cause_high=percent(audit.cause.high),
    )
    if audit.unsure:
        text += "; " + texts["unsure"].format(unsure=with_noun(audit.unsure, "audit"))
    return text


def _strata(audit: AuditAccuracy) -> str:
    """The sides that were right in each stratum, with intervals."""
    return "; ".join(
        f"{wording()['strata'].get(one.name, one.name)}: {one.side_right} of {one.answered} "
        f"({percent(one.side.low)} to {percent(one.side.high)})"
        for one in audit.strata
        if one.side is not None
    )


def _trust(facts: Facts) -> Iterable[tuple[str, str]]:
    texts, quality = wording()["trust"], facts.quality
    text = _audited(quality.audit)
    if quality.expected_right is not None:
        text += "; " + texts["expected"].format(expected=percent(quality.expected_right))
    yield "audited accuracy", text
    if quality.audit is not None and quality.audit.answered:
        yield "audited sides by verdict", _strata(quality.audit)
    of = {"diagnosed": with_noun(quality.diagnosed, "verdict")}
    for label, name, count in (
        ("abstained", "undecided", quality.abstained),
        ("contested", "contested by owners", quality.contested),
    ):
        if not quality.diagnosed:
            yield name, texts["undiagnosed"]
            continue
        yield name, texts[label].format(count=number(count), share=percent(count / quality.diagnosed), **of)
    revised = {"corrected": with_noun(quality.corrected, "verdict"), "revised": number(quality.revised)}
    yield "revised", texts["corrected"].format(**revised)
    if quality.seconds_to_verdict is not None:
        median, high = (duration(seconds) if seconds >= 1 else "under 1 s" for seconds in quality.seconds_to_verdict)
        yield "from event to verdict", texts["latency"].format(median=median, high=high)
    hours = round((min(facts.until, max(facts.now, facts.since)) - facts.since).total_seconds() / 3600)
    silent = len(quality.silent_hours)
    yield (
        "hours without data",
        texts["silent"].format(count=number(silent), hours=with_noun(hours, "hour")) if silent else texts["unsilent"],
    )


def _figures(facts: Facts, this: WeekCounts) -> dict[str, float | int | None]:
    quality, done = facts.quality, facts.automation
    return {
        "finished": this.finished,
        "failed": this.failed,
        "failure_rate": this.failed / this.finished if this.finished else None,
        "jobs_finished": this.jobs.finished,
        "jobs_failed": this.jobs.failed,
        "job_failure_rate": this.jobs.failed / this.jobs.finished if this.jobs.finished else None,
        "lineages": this.jobs.lineages,
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
        **({} if facts.goodput is None else goodput_section.raw_figures(facts.goodput)),
    }
