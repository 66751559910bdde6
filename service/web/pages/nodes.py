"""GET /nodes and one node: which fail more often than they should, why that is thought, and when one was repaired."""

from typing import Annotated

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.nodes.records import NodeSort
from service.web import fleet_views
from service.web.auth import READ
from service.web.pages.forms import Acting, Text, then
from service.web.pages.templating import path as as_path
from service.web.pages.templating import render
from service.web.services import Given

router = APIRouter()
SORTS: dict[NodeSort, str] = {"-suspicion": "most suspected first", "node": "by name"}
MESSAGES = {
    "yes": "The node begins anew: what was before counts no longer against it.",
    "no": "A later repair is known already; nothing changed.",
}
Cluster = Annotated[str, Path(max_length=200)]
Node = Annotated[str, Path(max_length=200)]


@router.get("/nodes", dependencies=[READ])
def nodes(
    request: Request,
    services: Given,
    cluster: Text = None,
    cursor: Text = None,
    sort: NodeSort = "-suspicion",
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> HTMLResponse:
    """One page of the list."""
    page = fleet_views.nodes(services, cluster=cluster or None, limit=limit, cursor=cursor or None, sort=sort)
    told = {
        "page": page,
        "cluster": cluster,
        "cursor": cursor,
        "limit": limit,
        "sort": sort,
        "sorts": SORTS,
        "standing": fleet_views.standing,
        "suspects": sum(fleet_views.standing(row) == "suspect" for row in page.items),
    }
    return render(request, "nodes.html", told)


@router.get("/nodes/{cluster}/{node:path}", dependencies=[READ])
def node(
    request: Request,
    services: Given,
    cluster: Cluster,
    node: Node,
    cursor: Text = None,
    repaired: Text = None,
) -> HTMLResponse:
    """One node."""
    found = fleet_views.node(services, cluster, node, cursor=cursor or None)
    told = {
        "found": found,
        "row": found.node,
        "standing": fleet_views.standing(found.node),
        "cursor": cursor,
        "kind_title": fleet_views.kind_title,
        "message": MESSAGES.get(repaired or ""),
    }
    return render(request, "node.html", told)


@router.post("/nodes/{cluster}/{node:path}/repaired")
def repaired(
    asked: Acting, cluster: Cluster, node: Node, note: Annotated[str, Form(max_length=500)] = ""
) -> RedirectResponse:
    """Say that it was repaired, then show it."""
    done = asked.services.nodes_say.repaired(cluster, node, by=asked.who, note=note.strip() or None)
    return then(f"/nodes/{as_path(cluster)}/{as_path(node)}?repaired={'yes' if done else 'no'}")
