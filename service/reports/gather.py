"""Reads the facts of a report from one snapshot, so that all figures are consistent."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from service.db.session import ReadSession, Store
from service.errors import DamagedData
from service.formatting import escape_invisible
from service.goodput import figures
from service.goodput.records import TrendPart
from service.headlines.headline import headline
from service.nodes.past_suspicion import suspicion_at
from service.nodes.records import FleetSettings
from service.reports import build, document, top_actions
from service.reports import scope as scopes
from service.reports.audit_accuracy import accuracy
from service.reports.comparison import COMPARED
from service.reports.document import RecommendedAction
from service.reports.records import EVERYTHING, Price
from service.reports.weekly_facts import (
    AutomationFacts,
    Cluster,
    CostCell,
    Facts,
    GroupFacts,
    IncidentFacts,
    JobCounts,
    NodeFacts,
    Quality,
    WeekCounts,
)
from service.statistics.records import Scope
from service.weeks import Week

TREND = 5  # weeks of goodput, including the week of the report
WEEKS = 12  # of the chart, including the week of the report
AMOUNTS = 20_000  # failed attempts of a week whose GPU-hours are read one by one
GROUPS = 40  # read by cost and by number; the report selects from them
ENVIRONMENT = ("EE.1", "EE.2", "EE.3")  # Zhang et al.: path, library, permission
DIFFERENCES = 10
NODES = 50


def gather(
    store: Store,
    week: Week,
    zone: ZoneInfo,
    now: datetime,
    scope: Scope = EVERYTHING,
    price: Price | None = None,
) -> Facts:
    """The facts of a week; those of a cluster or team with a `scope`. `price`: of a GPU-hour, for the cost.

    Raises:
        InvalidInput: no job of the scope is known.
        Unavailable: the database does not answer.
    """
    since, until = week.span(zone)
    with store.reading() as reading:
        weekly = reading.weekly_counts
        scopes.check(reading, scope, chart_span(week, zone))
        weeks = []
        for back in range(WEEKS - 1, -1, -1):
            one = week.earlier(back)
            weeks.append(_week(reading, one, zone, scope, compared=back <= COMPARED))
        return Facts(
            week=str(week),
            zone=zone.key,
            since=since,
            until=until,
            now=now,
            weeks=tuple(weeks),
            causes=weekly.breakdown(since, until, "cause", scope),
            categories=weekly.breakdown(since, until, "category", scope),
            symptoms=weekly.breakdown(since, until, "symptom", scope),
            groups=(groups := _groups(reading, since, until, scope)),
            cells=_cells(reading, since, until, scope),
            groups_cut=len(groups) >= GROUPS,
            environment=tuple(
                _group(one) for one in weekly.groups(since, until, scope, limit=DIFFERENCES, category=ENVIRONMENT)
            ),
            nodes=_nodes(reading, since, until, now, scope),
            incidents=tuple(
                IncidentFacts(one.id, escape_invisible(one.title), one.opened_at, one.closed_at, one.jobs)
                for one in reading.weekly_action_counts.incidents(since, until, scope)
            ),
            automation=(done := _automation(reading, since, until, scope)),
            resubmitted_by_people=max(weekly.resubmitted(since, until, scope) - done.resubmissions, 0),
            recorded_mitigations=reading.applied_fixes.between(since, until, scope.cluster, scope.team),
            quality=_quality(reading, week, (since, until, now), scope),
            previous_todo=_previous_todo(reading, week, zone, now, scope),
            goodput=figures.compute(reading.goodput.counts(week.days(zone), scope), scope),
            goodput_trend=_goodput_trend(reading, week, zone, scope),
            scope=scope,
            price=price,
        )


def _previous_todo(
    reading: ReadSession, week: Week, zone: ZoneInfo, now: datetime, scope: Scope
) -> tuple[RecommendedAction, ...]:
    """The actions that the report of the week before recommended.

    One of a scope that was not published is made again: nobody publishes it unless somebody subscribes to it.
    """
    published = reading.reports.latest(str(week.earlier(1)), scope)
    if published is not None:
        with suppress(DamagedData):
            return document.from_wire(published.body).todo
        return ()
    if scope == EVERYTHING:
        return ()
    since, until = week.earlier(1).span(zone)
    before = Facts(
        week=str(week.earlier(1)),
        zone=zone.key,
        since=since,
        until=until,
        now=now,
        weeks=(),
        groups=_groups(reading, since, until, scope),
        cells=_cells(reading, since, until, scope),
        nodes=_nodes(reading, since, until, now, scope),
        scope=scope,
    )
    return top_actions.top_actions_of(before, build.wording()["todo"])


def _goodput_trend(reading: ReadSession, week: Week, zone: ZoneInfo, scope: Scope) -> tuple[TrendPart, ...]:
    starts = [week.earlier(back).span(zone)[0] for back in range(TREND - 1, -1, -1)]
    bounds = (*starts, week.span(zone)[1])
    return figures.trend(bounds, reading.goodput.attempts(bounds, scope))


def _week(reading: ReadSession, week: Week, zone: ZoneInfo, scope: Scope, *, compared: bool) -> WeekCounts:
    span = week.span(zone)
    counts = reading.weekly_counts.counts(*span, scope)
    return WeekCounts(
        str(week),
        counts.finished,
        counts.failed.failures,
        counts.failed,
        counts.by_side,
        reading.weekly_counts.amounts(*span, scope) if counts.failed.failures <= AMOUNTS else (),
        _jobs(reading, week, zone, scope) if compared else JobCounts(),
    )


def _jobs(reading: ReadSession, week: Week, zone: ZoneInfo, scope: Scope) -> JobCounts:
    found = reading.weekly_job_counts.counts(week.days(zone), scope)
    return JobCounts(
        found.finished,
        found.failed,
        reading.weekly_job_counts.lineages(*week.span(zone), scope),
        found.by_day,
        tuple(
            Cluster(one.fingerprint, one.side, one.day, one.jobs, one.attempts, one.gpu_hours) for one in found.clusters
        ),
    )


def chart_span(week: Week, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Begin of the first and end of the last week of the chart."""
    return week.earlier(WEEKS - 1).span(zone)[0], week.span(zone)[1]


def _groups(reading: ReadSession, since: datetime, until: datetime, scope: Scope) -> tuple[GroupFacts, ...]:
    return tuple(_group(one) for one in reading.weekly_counts.groups(since, until, scope, limit=GROUPS))


def _cells(reading: ReadSession, since: datetime, until: datetime, scope: Scope) -> tuple[CostCell, ...]:
    return tuple(
        CostCell(
            row.fingerprint,
            row.cluster,
            row.suspect_node,
            (row.category or "").startswith("EE."),
            row.jobs,
            row.lost,
        )
        for row in reading.weekly_counts.cells(since, until, scope)
    )


def _nodes(
    reading: ReadSession, since: datetime, until: datetime, now: datetime, scope: Scope
) -> tuple[NodeFacts, ...]:
    """The nodes that fail significantly more often than the fleet, as of the end of the week or now.

    A team's report has those that failed its jobs in the week.
    """
    found = []
    for row in suspicion_at(reading, min(until, now), FleetSettings()):
        if scope.cluster not in (None, row.cluster):
            continue
        failed, lost = reading.weekly_action_counts.lost_on(row.node, row.cluster, since, until, scope)
        if failed or scope.team is None:
            found.append(
                NodeFacts(
                    row.cluster,
                    row.node,
                    row.ratio.mean,
                    row.ratio.low,
                    row.ratio.high,
                    row.weighted_failures,
                    row.hours,
                    lost,
                )
            )
        if len(found) == NODES:
            break
    return tuple(found)


def _automation(reading: ReadSession, since: datetime, until: datetime, scope: Scope) -> AutomationFacts:
    done = reading.weekly_action_counts.automated(since, until, scope)
    return AutomationFacts(
        by_state=done.by_state,
        by_outcome=done.by_outcome,
        rescued_gpu_hours=done.rescued,
        wasted_gpu_hours=done.wasted,
        retracted=done.retracted,
        resubmissions=done.resubmissions,
    )


def _quality(reading: ReadSession, week: Week, times: tuple[datetime, datetime, datetime], scope: Scope) -> Quality:
    since, until, now = times
    trust = reading.weekly_counts.trust(since, until, scope)
    audit = accuracy(reading.audit_samples.audit_results([str(week)], cluster=scope.cluster, team=scope.team))
    return Quality(
        diagnosed=trust.diagnosed,
        abstained=trust.abstained,
        revised=max(trust.revised - trust.corrected, 0),
        corrected=trust.corrected,
        contested=reading.weekly_action_counts.contested(since, until, scope),
        audited=audit.answered,
        audited_right=audit.side_right,
        expected_right=trust.confidence,
        seconds_to_verdict=_percentiles(reading.weekly_counts.seconds_to_verdict(since, until, scope)),
        silent_hours=reading.weekly_counts.silent_hours(since, min(until, max(now, since)), scope.cluster),
        audit=audit,
    )


def _percentiles(ascending: Sequence[float]) -> tuple[float, float] | None:
    if not ascending:
        return None
    return ascending[len(ascending) // 2], ascending[min(int(len(ascending) * 0.95), len(ascending) - 1)]


def _group(one: GroupFacts) -> GroupFacts:
    """The group with its headline as it may be shown."""
    return replace(one, headline=escape_invisible(headline(one.headline)))
