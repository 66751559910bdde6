"""Reads the facts of a report from one snapshot, so that all figures are consistent."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from service.db.session import ReadSession, Store
from service.formatting import escape_invisible
from service.goodput import figures
from service.goodput.records import Scope, TrendPart
from service.headlines.headline import headline
from service.nodes.past_suspicion import suspicion_at
from service.nodes.settings import FleetSettings
from service.reports import document
from service.reports.audit_accuracy import accuracy
from service.reports.comparison import COMPARED
from service.reports.document import Todo
from service.reports.repository.weekly_counts import GroupCount
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
from service.weeks import Week

TREND = 5  # weeks of goodput, including the week of the report
WEEKS = 12  # of the chart, including the week of the report
AMOUNTS = 20_000  # failed attempts of a week whose GPU-hours are read one by one
GROUPS = 40  # read by cost and by number; the report selects from them
ENVIRONMENT = ("EE.1", "EE.2", "EE.3")  # Zhang et al.: path, library, permission
DIFFERENCES = 10
NODES = 50


def gather(store: Store, week: Week, zone: ZoneInfo, now: datetime) -> Facts:
    """The facts of a week.

    Raises:
        Unavailable: the database does not answer.
    """
    since, until = week.span(zone)
    with store.reading() as reading:
        weekly = reading.weekly_counts
        weeks = []
        for back in range(WEEKS - 1, -1, -1):
            one = week.earlier(back)
            weeks.append(_week(reading, one, zone, compared=back <= COMPARED))
        return Facts(
            week=str(week),
            zone=zone.key,
            since=since,
            until=until,
            now=now,
            weeks=tuple(weeks),
            causes=weekly.breakdown(since, until, "cause"),
            categories=weekly.breakdown(since, until, "category"),
            symptoms=weekly.breakdown(since, until, "symptom"),
            groups=(groups := tuple(_group(one) for one in weekly.groups(since, until, limit=GROUPS))),
            cells=tuple(
                CostCell(
                    row.fingerprint,
                    row.cluster,
                    row.suspect_node,
                    (row.category or "").startswith("EE."),
                    row.jobs,
                    row.lost,
                )
                for row in weekly.cells(since, until)
            ),
            groups_cut=len(groups) >= GROUPS,
            environment=tuple(
                _group(one) for one in weekly.groups(since, until, limit=DIFFERENCES, category=ENVIRONMENT)
            ),
            nodes=tuple(_nodes(reading, since, until, now)),
            incidents=tuple(
                IncidentFacts(one.id, escape_invisible(one.title), one.opened_at, one.closed_at, one.jobs)
                for one in reading.weekly_action_counts.incidents(since, until)
            ),
            automation=(done := _automation(reading, since, until)),
            resubmitted_by_people=max(weekly.resubmitted(since, until) - sum(done.by_outcome.values()), 0),
            recorded_mitigations=reading.applied_fixes.between(since, until),
            quality=_quality(reading, week, since, until, now),
            previous_todo=_previous_todo(reading, week),
            goodput=figures.compute(reading.goodput.counts(week.days(zone), Scope()), Scope()),
            goodput_trend=_goodput_trend(reading, week, zone),
        )


def _previous_todo(reading: ReadSession, week: Week) -> tuple[Todo, ...]:
    published = reading.reports.latest(str(week.earlier(1)))
    return () if published is None else document.from_wire(published.body).todo


def _goodput_trend(reading: ReadSession, week: Week, zone: ZoneInfo) -> tuple[TrendPart, ...]:
    starts = [week.earlier(back).span(zone)[0] for back in range(TREND - 1, -1, -1)]
    bounds = (*starts, week.span(zone)[1])
    return figures.trend(bounds, reading.goodput.attempts(bounds, Scope()))


def _week(reading: ReadSession, week: Week, zone: ZoneInfo, *, compared: bool) -> WeekCounts:
    span = week.span(zone)
    counts = reading.weekly_counts.counts(*span)
    return WeekCounts(
        str(week),
        counts.finished,
        counts.failed.failures,
        counts.failed,
        counts.by_side,
        reading.weekly_counts.amounts(*span) if counts.failed.failures <= AMOUNTS else (),
        _jobs(reading, week, zone) if compared else JobCounts(),
    )


def _jobs(reading: ReadSession, week: Week, zone: ZoneInfo) -> JobCounts:
    found = reading.weekly_job_counts.counts(week.days(zone))
    return JobCounts(
        found.finished,
        found.failed,
        reading.weekly_job_counts.lineages(*week.span(zone)),
        found.by_day,
        tuple(
            Cluster(one.fingerprint, one.side, one.day, one.jobs, one.attempts, one.gpu_hours) for one in found.clusters
        ),
    )


def _nodes(reading: ReadSession, since: datetime, until: datetime, now: datetime) -> Iterator[NodeFacts]:
    """The nodes that fail significantly more often than the fleet, as of the end of the week or now."""
    for row in suspicion_at(reading, min(until, now), FleetSettings())[:NODES]:
        lost = reading.weekly_action_counts.lost_on(row.node, row.cluster, since, until)
        yield NodeFacts(
            row.cluster, row.node, row.ratio.mean, row.ratio.low, row.ratio.high, row.blame, row.hours, lost
        )


def _automation(reading: ReadSession, since: datetime, until: datetime) -> AutomationFacts:
    done = reading.weekly_action_counts.automated(since, until)
    return AutomationFacts(done.by_state, done.by_outcome, done.rescued, done.wasted, done.retracted)


def _quality(reading: ReadSession, week: Week, since: datetime, until: datetime, now: datetime) -> Quality:
    trust = reading.weekly_counts.trust(since, until)
    audit = accuracy(reading.audit_samples.audit_results([str(week)]))
    return Quality(
        diagnosed=trust.diagnosed,
        abstained=trust.abstained,
        revised=max(trust.revised - trust.corrected, 0),
        corrected=trust.corrected,
        contested=reading.weekly_action_counts.contested(since, until),
        audited=audit.answered,
        audited_right=audit.side_right,
        expected_right=trust.confidence,
        seconds_to_verdict=_percentiles(reading.weekly_counts.seconds_to_verdict(since, until)),
        silent_hours=reading.weekly_counts.silent_hours(since, min(until, max(now, since))),
        audit=audit,
    )


def _percentiles(ascending: Sequence[float]) -> tuple[float, float] | None:
    if not ascending:
        return None
    return ascending[len(ascending) // 2], ascending[min(int(len(ascending) * 0.95), len(ascending) - 1)]


def _group(one: GroupCount) -> GroupFacts:
    return GroupFacts(
        one.fingerprint,
        one.failure_id,
        escape_invisible(headline(one.headline)),
        one.side,
        one.cause,
        one.sum,
        one.users,
        one.first_seen,
        one.last_before,
        one.merged,
        one.resolved,
        one.returned,
    )
