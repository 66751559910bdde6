"""GET /: failures by side and cause, their cost, and health of the pipeline."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from classifiers import taxonomy
from service import formatting
from service.contracts.event import FAILURE_STATUSES
from service.failures.records import COUNTED_AS_FAILED
from service.groups.records import GroupFilter, GroupRow, GroupState
from service.nodes.records import NodeRow
from service.statistics.records import PeriodCount, Share
from service.web import automation_views, goodput_views, group_views, node_views, views
from service.web.auth import OWN, Principal
from service.web.pages.charts import marks, sparklines, stacked_bars
from service.web.pages.failures import newest
from service.web.pages.forms import OverviewScope, overview_scope, wrong_times
from service.web.pages.templating import query, render
from service.web.services import InjectedServices, Services
from service.web.views import FailureQuery

router = APIRouter()
LATEST = 12
COSTLIEST = 5
CAUSES = 8
FREQUENT = 6  # groups of the period
INCIDENTS = 5
SUSPECTS = 5
OUTCOMES = timedelta(days=7)  # of resubmissions
ATTENTION_LIMITS: dict[GroupState, int] = {"escalating": 5, "regressed": 5, "new": 6}  # groups shown per state


@router.get("/", response_model=None)
def overview(
    request: Request,
    services: InjectedServices,
    reader: Annotated[Principal, OWN],
    scope: Annotated[OverviewScope, Depends(overview_scope)],
) -> HTMLResponse | RedirectResponse:
    """The overview; users who may see only some failures are redirected to the list."""
    if not reader.may("read"):
        return RedirectResponse("/failures", 303)
    problems = wrong_times(services, FailureQuery(since=scope.since, until=scope.until))
    if problems:
        scope = replace(scope, since=None, until=None)
    since = scope.since or views.default_since(services, scope.until)
    with services.snapshot() as snapshot:
        jobs = scope.jobs()
        begin, end = views.period(snapshot, since, scope.until)
        with snapshot.reading() as reading:
            parts = reading.statistics.series(begin, end, jobs)  # first: its rows answer a part of the next question
            stats = reading.statistics.stats(begin, end, jobs, "shares")
            tallied = reading.outcomes.tallies(snapshot.clock.now() - OUTCOMES, started_by_hooks=True)
            nothing_yet = not stats.by_status and not reading.jobs.any()
            open_incidents = reading.incidents.page(still_open=True, cluster=scope.cluster, limit=INCIDENTS)
        values = jobs.given()
        failure_query = FailureQuery(values, since=since, until=scope.until)
        counted = replace(failure_query, values={**values, "status": COUNTED_AS_FAILED})
        attention = groups_needing_attention(snapshot, scope)
        before = views.before(snapshot, stats, jobs)
        period_marks = marks.find(snapshot, stats.since, stats.until, cluster=scope.cluster)
        sides = sides_in_order(stats.by_side)
        goodput = goodput_views.summary(snapshot, stats, before, jobs, (since, scope))
        context = {
            "attention": attention,
            "nothing_yet": nothing_yet,
            "frequent": group_views.most_frequent(snapshot, views.failure_filter(snapshot, counted), most=FREQUENT),
            "sparklines": sparklines.of_groups(snapshot, attention),
            "incidents": open_incidents.items,
            "more_incidents": open_incidents.next_cursor is not None,
            "automation": automation_views.overview(snapshot),
            "outcomes": (sum(one.helped for one in tallied), sum(one.failed for one in tallied)),
            "suspects": suspect_nodes(snapshot, scope.cluster),
            "newest": newest(snapshot),
            "since": since,
            "scope": scope.where(),
            "given": {name: value for name, value in scope.where().items() if value},
            "span": {"since": since, "until": scope.until},
            "stats": stats,
            "sides": sides,
            "others": {
                status: count
                for status, count in stats.by_status.items()
                if status not in FAILURE_STATUSES and status != "succeeded" and count
            },
            "causes": stats.by_cause[:CAUSES],
            "more_causes": len(stats.by_cause) - CAUSES,
            "charts": stacked_bars.charts(parts, services.zone, period_marks),
            "marks": period_marks,
            "size": (stacked_bars.WIDTH, stacked_bars.HEIGHT),
            "parts": _rows(parts, services.zone, scope, sides),
            "per": stacked_bars.per(parts),
            "wider": stacked_bars.wider(stats.since, stats.until, services.clock.now()) if scope.until else None,
            "trends": sparklines.of_period(parts),
            "count": formatting.number,
            "hours": formatting.gpu_hours,
            "share": formatting.percent,
            "points": lambda share: f"{100 * share:.1f} points",
            "before": before,
            "goodput": goodput,
            "problems": problems,
            "pipeline": views.pipeline(snapshot),
            "latest": views.failures(snapshot, failure_query, limit=LATEST).items,
            "costliest": [
                row
                for row in views.costliest(snapshot, failure_query, (begin, end), jobs, most=COSTLIEST)
                if row.gpu_hours_lost > 0
            ],
        }
        return render(request, "overview/page.html", context, services=snapshot, status=422 if problems else 200)


def groups_needing_attention(services: Services, scope: OverviewScope) -> list[GroupRow]:
    """Escalating, regressed and new groups in this scope, most expensive first in each state."""
    filters = GroupFilter(cluster=scope.cluster, queue=scope.queue, team=scope.team)
    with services.reading() as reading:
        return reading.groups.most_expensive(filters, ATTENTION_LIMITS)


def suspect_nodes(services: Services, cluster: str | None) -> list[NodeRow]:
    """The nodes that fail more often than expected, most suspected first."""
    page = node_views.nodes(services, cluster=cluster, limit=SUSPECTS)
    return [node for node in page.items if node_views.node_status(node) == "suspect"]


def sides_in_order(shares: tuple[Share, ...]) -> list[Share]:
    """The sides in a fixed order, including sides without failures."""
    found = {share.key: share for share in shares}
    sides = [*taxonomy.load().sides, *(key for key in found if key not in taxonomy.load().sides)]
    return [found.get(side) or Share(side, 0, 0.0) for side in sides]


def _rows(
    parts: Sequence[PeriodCount], zone: ZoneInfo, scope: OverviewScope, sides: Sequence[Share]
) -> list[stacked_bars.PartRow]:
    step = max((part.end - part.begin for part in parts), default=stacked_bars.DAY)
    where, keys = scope.where(), [share.key for share in sides]
    return [
        stacked_bars.PartRow(
            part,
            stacked_bars.moment(part.begin, zone, step),
            query(where, stacked_bars.part_span(part)),
            tuple(formatting.number(part.by_side.get(key, 0)) for key in keys),
        )
        for part in parts
    ]
