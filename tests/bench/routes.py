"""The benchmark's requests to pages and API: every GET route with its filters, searches and deep pages.

A table by route, so that a missing new route is detected (by tests/service/web/test_scale.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote
from zoneinfo import ZoneInfo

from service.db.session import Store
from service.failures.records import FailureFilter
from service.failures.repository.failures import FailureReader
from service.sql import paging as cursors
from service.weeks import of as week_of

API = "/api/v1"

# Routes that do not depend on the amount of data, or that stream for as long as a client listens.
ELSEWHERE = frozenset(
    {
        "/live",
        "/failures/{failure_id}/live",
        "/login",
        "/login/oidc",
        "/account",
        "/settings/tokens",
        f"{API}/account/sessions",
        f"{API}/accounts/{{name:path}}/sessions",
        "/login/oidc/callback",
        "/unsubscribe/{token}",
        "/favicon.ico",
        "/health/live",
        "/health/ready",
        "/metrics",
        f"{API}/health/live",
        f"{API}/health/ready",
        f"{API}/metrics",
        f"{API}/openapi.json",
        "/model/layers/{layer_id}",
        f"{API}/site-layers/{{layer_id}}",
        f"{API}/schemas",
        f"{API}/schemas/{{name:path}}",
    }
)
FIRST_BYTE = ("export.csv", "export.json", "/labels")  # streams: the time to the first byte counts


@dataclass(frozen=True, slots=True)
class Places:
    """Sample ids from a database, for the URLs."""

    failure: int
    cluster: str
    job_id: str
    user: str
    team: str
    queue: str
    node: str
    fingerprint: str
    cause: str
    word: str
    rare: str
    group: int
    small_group: int
    incident: int
    request: str
    audit_week: str
    audited: int
    week: str
    middle: datetime
    middle_id: int
    middle_cost: float
    group_middle: datetime


def places(store: Store, now: datetime) -> Places:
    """Read the sample ids."""
    with store.reading() as reading:
        failures: FailureReader = reading.failures
        newest = failures.page(FailureFilter(side="hardware"), limit=1).items[0]
        row = reading.groups.page(limit=500).items
        biggest, smallest = max(row, key=lambda one: one.failures), min(row, key=lambda one: one.failures)
        costly = failures.page(limit=500, sort="-gpu_hours_lost").items[-1]
        middle = failures.page(FailureFilter(until=now - (now - biggest.first_at) / 2), limit=1).items[0]
        incident = reading.incidents.page(limit=1).items[0]
        request = reading.requests.page(limit=1).items[0]
        audits = reading.audit_samples.audit_weeks(limit=1)
        audited = reading.audit_samples.audit(audits[0])[0].failure_id
    return Places(
        failure=newest.id,
        cluster=newest.cluster,
        job_id=newest.job_id,
        user=newest.user or "",
        team=newest.team or "",
        queue=newest.queue or "",
        node=newest.nodes[0],
        fingerprint=newest.fingerprint,
        cause=newest.cause,
        word="exhausted",
        rare=newest.headline.split()[1],
        group=biggest.id,
        small_group=smallest.id,
        incident=incident.id,
        request=request.request_id,
        audit_week=audits[0],
        audited=audited,
        week=str(week_of(now, ZoneInfo("UTC")).earlier(1)),
        middle=middle.ended_at,
        middle_id=middle.id,
        middle_cost=costly.gpu_hours_lost / 2,
        group_middle=row[len(row) // 2].last_at,
    )


def both(
    path: str, queries: tuple[str, ...], *, page: tuple[str, ...] = (), api: tuple[str, ...] = ()
) -> dict[str, tuple[str, ...]]:
    """Return a page and the API call of the same name with the same queries; `page`, `api`: further ones of each."""
    return {
        path: tuple(path + query for query in (*queries, *page)),
        f"{API}{path}": tuple(f"{API}{path}{query}" for query in (*queries, *api)),
    }


def routes(at: Places) -> Mapping[str, tuple[str, ...]]:
    """Return the requests by the application's route."""
    failure = f"/failures/{at.failure}"
    node = f"{at.cluster}/{quote(at.node, safe='')}"
    deep = cursors.encode("failures-ended_at", at.middle.isoformat(), at.middle_id)
    cost = cursors.encode("failures-gpu_hours_lost", at.middle_cost, at.middle_id)
    deep_groups = cursors.encode("groups-last_at", at.group_middle.isoformat(), at.small_group)
    iso = at.middle.isoformat().replace("+00:00", "Z")
    past = (at.middle - timedelta(days=7)).isoformat().replace("+00:00", "Z")
    filters = (
        "",
        "?side=hardware",
        f"?side=user&cause=USER.1&cluster={at.cluster}",
        f"?cause={at.cause}",
        f"?user={at.user}",
        f"?user={at.user}&cause={at.cause}&status=hung",
        f"?team={at.team}",
        f"?queue={at.queue}&abstained=true",
        f"?node={at.node}",
        f"?node={at.node}&side=user",
        f"?group={at.group}",
        f"?group={at.fingerprint}",
        "?user=nobody",
        "?status=hung",
        "?category=EE.2",
        "?symptom=A.1",
        f"?q={at.word}",
        f"?q={at.rare}",
        f"?q={at.word}%20nowhere",
        f"?q={at.word}&user={at.user}",
        "?since=24h",
        f"?since={past}&until={iso}",
        "?sort=-gpu_hours_lost",
        f"?sort=-gpu_hours_lost&user={at.user}",
        "?sort=-gpu_hours_lost&since=7d",
        "?sort=ended_at",
    )
    places_in_list = (f"?cursor={deep}", f"?cursor={deep}&side=user", f"?sort=-gpu_hours_lost&cursor={cost}")
    spans = (
        "",
        "?since=7d",
        "?since=28d",
        "?since=365d",
        f"?since=28d&cluster={at.cluster}",
        f"?since=28d&team={at.team}",
    )
    groups = (
        "",
        "?state=new",
        "?state=ongoing",
        "?state=escalating",
        "?side=hardware",
        f"?cause={at.cause}",
        f"?user={at.user}",
        f"?node={at.node}",
        f"?cluster={at.cluster}",
        f"?team={at.team}&state=ongoing",
        "?assignee=nobody",
        "?sort=-gpu_hours_lost",
        f"?sort=-gpu_hours_lost&team={at.team}",
        "?sort=-gpu_hours_lost&state=ongoing",
        f"?cursor={deep_groups}",
        "?since=7d",
        "?since=14d&until=7d&sort=-gpu_hours_lost",
    )
    found: dict[str, tuple[str, ...]] = {
        "/": tuple(f"/{query}" for query in spans),
        f"{API}/stats": tuple(f"{API}/stats{query}" for query in spans),
        **both("/failures", filters + places_in_list, api=("?limit=500",)),
        f"{API}/facets": tuple(f"{API}/facets{query}" for query in filters if "sort" not in query),
        f"{API}/failures/export.csv": (f"{API}/failures/export.csv", f"{API}/failures/export.csv?user={at.user}"),
        f"{API}/failures/export.json": (f"{API}/failures/export.json", f"{API}/failures/export.json?q={at.word}"),
        "/failures/{failure_id}": (failure, f"{failure}?user={at.user}", f"{failure}?list=all"),
        f"{API}/failures/{{failure_id}}": (API + failure, f"{API}{failure}?logs=true"),
        "/failures/{failure_id}/logs/{attempt_id}/{index}": (f"{failure}/logs/{at.failure}/0",),
        "/failures/{failure_id}/logs/{attempt_id}/{index}/lines": (f"{failure}/logs/{at.failure}/0/lines",),
        "/failures/{failure_id}/logs/{attempt_id}/{index}/lines.json": (f"{failure}/logs/{at.failure}/0/lines.json",),
        f"{API}/failures/{{failure_id}}/feedback": (f"{API}{failure}/feedback",),
        f"{API}/jobs/{{cluster}}/{{job_id:path}}": (f"{API}/jobs/{at.cluster}/{at.job_id}",),
        **both("/groups", groups, page=("?view=board", f"?view=board&team={at.team}")),
        "/groups/{group_id}": (f"/groups/{at.group}", f"/groups/{at.small_group}"),
        f"{API}/groups/{{group_id}}": (f"{API}/groups/{at.group}",),
        f"{API}/groups/{{group_id}}/labels": (f"{API}/groups/{at.group}/labels",),
        **both("/nodes", ("", f"?cluster={at.cluster}", "?sort=node", f"?sort=node&cluster={at.cluster}")),
        "/nodes/{cluster}/{node:path}": (
            f"/nodes/{node}",
            f"/nodes/{node}?side=user",
            f"/nodes/{node}?since=14d&until=7d",
        ),
        f"{API}/nodes/{{cluster}}/{{node:path}}": (f"{API}/nodes/{node}",),
        **both("/incidents", ("", "?since=14d&until=7d"), api=("?open=true", f"?cluster={at.cluster}")),
        "/incidents/{incident_id}": (f"/incidents/{at.incident}",),
        f"{API}/incidents/{{incident_id}}": (f"{API}/incidents/{at.incident}",),
        "/automation": ("/automation", "/automation?state=done", f"/automation?cluster={at.cluster}"),
        f"{API}/automation": (f"{API}/automation",),
        f"{API}/resubmissions": (
            f"{API}/resubmissions",
            f"{API}/resubmissions?state=held",
            f"{API}/resubmissions?cluster={at.cluster}&state=shadow",
            f"{API}/resubmissions?failure={at.failure}",
            f"{API}/resubmissions?incident={at.incident}",
        ),
        f"{API}/resubmissions/{{request_id}}": (f"{API}/resubmissions/{at.request}",),
        "/model": ("/model",),
        "/signatures": ("/signatures", "/signatures?signature=python.module-not-found"),
        f"{API}/models": (f"{API}/models",),
        "/model/layers": ("/model/layers",),
        "/model/drift": ("/model/drift",),
        f"{API}/drift": (f"{API}/drift",),
        f"{API}/site-layers": (f"{API}/site-layers",),
        "/feedback": ("/feedback",),
        "/feedback/next": ("/feedback/next",),
        f"{API}/label-queue": (f"{API}/label-queue",),
        f"{API}/feedback": (f"{API}/feedback",),
        "/feedback/audit/{week}/{failure_id}": (f"/feedback/audit/{at.audit_week}/{at.audited}",),
        f"{API}/audits/{{week}}": (f"{API}/audits/{at.audit_week}",),
        f"{API}/labels": (f"{API}/labels",),
        f"{API}/views": (f"{API}/views",),
        **both("/dead-letters", ("",)),
        **both("/deliveries", ("", "?state=waiting")),
        "/mine": ("/mine",),
        "/search": ("/search?q=900049", "/search?q=gpu018", "/search?q=CUDA+error"),
        **both("/goodput", ("", f"?cluster={at.cluster}")),
        **both("/reports", ("",)),
        "/reports/{week}": (f"/reports/{at.week}", f"/reports/{at.week}?cluster={at.cluster}"),
        f"{API}/report-subscriptions": (f"{API}/report-subscriptions",),
        "/reports/{week}.md": (f"/reports/{at.week}.md",),
        "/reports/{week}.pdf": (f"/reports/{at.week}.pdf",),
        f"{API}/reports/{{week}}": (f"{API}/reports/{at.week}",),
        "/settings": ("/settings",),
        **both("/audit-log", ("", "?subject=failure/1", "?what=verdict.correct&since=7d")),
    }
    return found
