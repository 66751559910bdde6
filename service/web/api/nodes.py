"""GET /nodes, one node, and POST /nodes/{cluster}/{node}:repaired."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import AwareDatetime, BaseModel, Field

from service.failures.records import FailureRow
from service.nodes.records import NodeRow, NodeSort, StoredNodeEvent
from service.web import node_views
from service.web.api.parameters import ClusterInPath, Cursor, Limit, NodeInPath, RequestBody, Text
from service.web.auth import ACT, READ
from service.web.error_responses import answers
from service.web.services import InjectedServices

router = APIRouter(tags=["nodes"])


class NodesPage(BaseModel):
    """One page of nodes."""

    items: list[NodeRow]
    next_cursor: str | None


class NodeAnswer(BaseModel):
    """One node: suspicion, events (newest first, paged by `next_cursor`), maintenance windows and failures."""

    node: NodeRow
    events: list[StoredNodeEvent]
    next_cursor: str | None
    windows: list[StoredNodeEvent]
    failures: list[FailureRow]


class Repaired(RequestBody):
    """A repair; `at` defaults to now."""

    at: AwareDatetime | None = None
    note: str | None = Field(default=None, max_length=500)


class RepairedAnswer(BaseModel):
    """The node after the repair; `changed` is false if a later repair is already recorded."""

    changed: bool
    node: NodeRow


@router.get("/nodes", dependencies=[READ], responses=answers(401, 403, 422, 503))
def get_nodes(
    services: InjectedServices,
    cluster: Text = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    sort: NodeSort = "-suspicion",
) -> NodesPage:
    """Nodes, most suspected first by default.

    `rate_ratio` is the failure rate of a node relative to its exposure (1.0: as on other nodes), `low` and `high` its
    90 % interval; `exposure_h` are node-hours and `blame` weighted failures, both with decay.
    """
    page = node_views.nodes(services, cluster=cluster or None, limit=limit, cursor=cursor, sort=sort)
    return NodesPage(items=list(page.items), next_cursor=page.next_cursor)


@router.get("/nodes/{cluster}/{node:path}", dependencies=[READ], responses=answers(401, 403, 404, 422, 503))
def get_node(
    services: InjectedServices,
    cluster: ClusterInPath,
    node: NodeInPath,
    limit: Annotated[int, Query(ge=1, le=500, description="maximum number of events")] = 50,
    cursor: Cursor = None,
) -> NodeAnswer:
    """One node."""
    found = node_views.node(services, cluster, node, limit=limit, cursor=cursor)
    return NodeAnswer(
        node=found.node,
        events=list(found.events.items),
        next_cursor=found.events.next_cursor,
        windows=list(found.windows),
        failures=list(found.failures.items),
    )


@router.post(
    "/nodes/{cluster}/{node:path}:repaired", dependencies=[ACT], responses=answers(400, 401, 403, 404, 422, 503)
)
def repaired(
    request: Request, services: InjectedServices, cluster: ClusterInPath, node: NodeInPath, body: Repaired | None = None
) -> RepairedAnswer:
    """Record a repair: earlier failures no longer count against the node."""
    given = body or Repaired()
    changed = services.node_event_intake.repaired(
        cluster, node, actor=request.state.principal.name, note=given.note, at=given.at
    )
    with services.reading() as reading:
        return RepairedAnswer(changed=changed, node=reading.suspicion.get(cluster, node))
