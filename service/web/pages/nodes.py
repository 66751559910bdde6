"""GET /nodes and one node: failure rates, evidence and repairs."""

from dataclasses import replace
from datetime import UTC
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.contracts.page import Page
from service.nodes.records import NodeRow, NodeSort
from service.statistics.records import SIDES
from service.web import node_views, views
from service.web.api.parameters import ClusterInPath, NodeInPath
from service.web.auth import READ
from service.web.pages import node_history
from service.web.pages.charts.node_map import KEY, MOST, node_map
from service.web.pages.forms import DEFAULT_ROWS, ActForm, PeriodOfUrl, RowLimit, Text, in_url, redirect
from service.web.pages.templating import path as as_path
from service.web.pages.templating import query, render, segment
from service.web.services import InjectedServices
from service.web.views import FailureQuery

router = APIRouter()
SORTS: dict[NodeSort, str] = {"-suspicion": "most suspected first", "node": "by name"}
MESSAGES = {
    "yes": "The repair is recorded. Failures before it no longer count against the node.",
    "no": "A later repair is already recorded; nothing changed.",
}


@router.get("/nodes", dependencies=[READ])
def nodes(
    request: Request,
    services: InjectedServices,
    cluster: Text = None,
    cursor: Text = None,
    sort: NodeSort = "-suspicion",
    limit: RowLimit = DEFAULT_ROWS,
) -> HTMLResponse:
    """One page of the list."""
    with services.snapshot() as snapshot:
        page = node_views.nodes(snapshot, cluster=cluster or None, limit=limit, cursor=cursor or None, sort=sort)
        first = not cursor and page.items
        named: Page[NodeRow] = Page(())
        if first:
            named = node_views.nodes(snapshot, cluster=cluster or None, limit=MOST, sort="node")
        kept = {"cluster": cluster, "limit": None if limit == DEFAULT_ROWS else limit}
        context = {
            "page": page,
            "map": node_map(named.items),
            "map_cut": MOST if named.next_cursor else None,
            "map_key": KEY,
            "cluster": cluster,
            "cursor": cursor,
            "limit": limit,
            "sort": sort,
            "sorts": SORTS,
            "sort_link": lambda order: f"/nodes{query(kept, sort=None if order == '-suspicion' else order)}",
            "node_status": node_views.node_status,
            "suspects": sum(node_views.node_status(row) == "suspect" for row in page.items),
        }
        return render(request, "nodes.html", context, services=snapshot)


@router.get("/nodes/{cluster}/{node:path}", dependencies=[READ])
def node(
    request: Request,
    services: InjectedServices,
    cluster: ClusterInPath,
    node: NodeInPath,
    period: PeriodOfUrl,
    cursor: Text = None,
    repaired: Text = None,
    side: Annotated[Literal["", "hardware", "system", "user", "unknown"], Query()] = "",
) -> HTMLResponse:
    """One node. `side` selects the failures of its history; unknown: the undecided ones."""
    on_node = node_history.failures_on(cluster, node, side or None)
    wanted = replace(on_node, since=period.query.since, until=period.query.until)
    with services.snapshot() as snapshot:
        found = node_views.node(snapshot, cluster, node, cursor=cursor or None, failures=wanted)
        repaired_at = found.node.repaired_at
        pointing_here = FailureQuery(
            {"node": node, "suspect": node, "cluster": cluster},
            since=None if repaired_at is None else f"{repaired_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        )
        status = node_views.node_status(found.node)
        context = {
            "found": found,
            "row": found.node,
            "causes": views.facets(snapshot, pointing_here),
            "cause_filters": {
                **pointing_here.values,
                **({"since": pointing_here.since} if pointing_here.since else {}),
            },
            "node_status": status,
            "cursor": cursor,
            "side": side or None,
            "sides": SIDES,
            "wanted": in_url(wanted),
            "trend": node_history.trend(snapshot, wanted),
            "kind_title": node_views.kind_title,
            "moments": node_history.moments(
                found.node,
                found.events.items,
                () if cursor else found.failures.items,
                (period.since, period.until),
            ),
            "problems": period.problems,
            "commands": node_history.commands(node, suspect=status == "suspect"),
            "message": MESSAGES.get(repaired or ""),
        }
        return render(request, "node.html", context, services=snapshot, status=422 if period.problems else 200)


@router.post("/nodes/{cluster}/{node:path}/repaired")
def repaired(
    form: ActForm, cluster: ClusterInPath, node: NodeInPath, note: Annotated[str, Form(max_length=500)] = ""
) -> RedirectResponse:
    """Record a repair, then show the node."""
    done = form.services.node_event_intake.repaired(cluster, node, actor=form.actor, note=note.strip() or None)
    return redirect(f"/nodes/{segment(cluster)}/{as_path(node)}?repaired={'yes' if done else 'no'}")
