"""Parameters shared by several routes."""

import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import Depends, Path, Query, Request, params
from fastapi.dependencies.utils import get_flat_params
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import FieldError, InvalidInput
from service.groups.records import GroupFilter, GroupState
from service.sql.types import HIGHEST_ID
from service.web.auth import ACT, OWN, ActionRequest, Principal
from service.web.services import InjectedServices
from service.web.url_times import When
from service.web.views import FailureQuery, given_texts

# Stands for a slash of a cluster's name until the path has been matched; a private character that no name contains.
_SLASH = "\ue000"
_CLUSTER_WITH_SLASH = re.compile(rb"((?:/[^/]+)*?/(?:nodes|jobs)/)([^/]*%2[Ff][^/]*)(/.+)")
ClusterInPath = Annotated[str, Path(max_length=200), AfterValidator(lambda name: name.replace(_SLASH, "/"))]
NodeInPath = Annotated[str, Path(max_length=200)]
Id = Annotated[int, Path(ge=1, le=HIGHEST_ID)]
Limit = Annotated[int, Query(ge=1, le=500, description="maximum number of items")]
Cursor = Annotated[str | None, Query(max_length=1_000, description="`next_cursor` of the previous page")]
Since = Annotated[When | None, Query(description="ended at or after")]
Until = Annotated[When | None, Query(description="ended before")]
Text = Annotated[str | None, Query(max_length=200)]


class RequestBody(BaseModel):
    """The body of a request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Comment(RequestBody):
    """A comment on an action."""

    comment: Annotated[str, Field(max_length=2_000)] | None = None


class ClusterSlashes:
    """Lets the cluster in a path have a slash in its name, as `%2F`: servers decode a path before it is matched.

    An example is the ARN of a cluster of EKS. Jobs and nodes, at the end of a path, may have slashes anyhow.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        found = _CLUSTER_WITH_SLASH.fullmatch(scope.get("raw_path") or b"")
        if found is not None:
            before, cluster, after = (unquote(part.decode("latin-1")) for part in found.groups())
            scope = {**scope, "path": f"{before}{cluster.replace('/', _SLASH)}{after}"}
        await self._app(scope, receive, send)


class BlankParameters:
    """Leaves out parameters of the API without a value: clients send `cursor=` for one that is not set, as forms do."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        query: bytes = scope.get("query_string", b"")
        if query and scope["path"].startswith("/api/"):
            given = [part for part in query.split(b"&") if part.partition(b"=")[2]]
            scope = {**scope, "query_string": b"&".join(given)}
        await self._app(scope, receive, send)


def commented_action(
    services: InjectedServices, principal: Annotated[Principal, ACT], body: Comment | None = None
) -> ActionRequest:
    """An action of a caller with scope act, with an optional comment."""
    return ActionRequest(services, principal, body.comment if body is not None else None)


CommentedAction = Annotated[ActionRequest, Depends(commented_action)]


def owners_action(
    services: InjectedServices, principal: Annotated[Principal, OWN], body: Comment | None = None
) -> ActionRequest:
    """An action of a caller who may be the owner of the job, with an optional comment; the route checks that."""
    return ActionRequest(services, principal, body.comment if body is not None else None)


OwnersAction = Annotated[ActionRequest, Depends(owners_action)]


def owners_decision(services: InjectedServices, principal: Annotated[Principal, OWN]) -> ActionRequest:
    """An action without a body of a caller who may be the owner of the job; the route checks that."""
    return ActionRequest(services, principal)


OwnersDecision = Annotated[ActionRequest, Depends(owners_decision)]


async def reject_unknown_parameters(request: Request) -> None:
    """Reject unknown and repeated query parameters: a misspelt filter must not return everything.

    Raises:
        InvalidInput: a parameter is unknown or repeated; the error lists the known ones.
    """
    declared = get_flat_params(request.scope["route"].dependant)
    known = sorted({parameter.alias for parameter in declared if isinstance(parameter.field_info, params.Query)})
    expected = f"one of {', '.join(known)}" if known else "no parameter"
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        wrong = tuple(FieldError(name[:80], f"a known parameter: {expected}") for name in dict.fromkeys(unknown))
        raise InvalidInput(f"{wrong[0].field}: expected {wrong[0].expected}", wrong[:20])
    for name in request.query_params:
        times = len(request.query_params.getlist(name))
        if times > 1:
            raise InvalidInput(f"{name}: expected once", (FieldError(name, "once", f"{times} times"),))


def text_filters(
    side: Text = None,
    cause: Text = None,
    symptom: Text = None,
    category: Text = None,
    cluster: Text = None,
    queue: Text = None,
    team: Text = None,
    user: Text = None,
    node: Annotated[str | None, Query(max_length=200, description="a node that ran the job")] = None,
    suspect: Annotated[str | None, Query(max_length=200, description="the node that the verdict suspects")] = None,
    group: Annotated[str | None, Query(max_length=200, description="a fingerprint")] = None,
    status: Annotated[
        str | None, Query(max_length=200, description="one status, or counted_as_failed: those of the failure rate")
    ] = None,
    q: Annotated[
        str | None, Query(max_length=200, description="words that the evidence contains (all of them)")
    ] = None,
    job: Annotated[str | None, Query(max_length=200, description="a job id, or the name of a recent job")] = None,
) -> dict[str, str | None]:
    """The filters of failures that are texts, by name: the same for the API and the pages."""
    return {
        "side": side,
        "cause": cause,
        "symptom": symptom,
        "category": category,
        "cluster": cluster,
        "queue": queue,
        "team": team,
        "user": user,
        "node": node,
        "suspect": suspect,
        "group": group,
        "status": status,
        "q": q,
        "job": job,
    }


TextFilters = Annotated[dict[str, str | None], Depends(text_filters)]


def failure_query(
    texts: TextFilters,
    abstained: Annotated[bool | None, Query(description="whether the verdict is undecided")] = None,
    since: Since = None,
    until: Until = None,
) -> FailureQuery:
    """The filters of failures; empty values are ignored, like blank form fields."""
    return FailureQuery.of(texts, abstained=abstained, since=since, until=until)


def group_texts(
    side: Text = None,
    cause: Text = None,
    cluster: Text = None,
    queue: Text = None,
    team: Text = None,
    user: Text = None,
    node: Text = None,
    assignee: Text = None,
) -> dict[str, str]:
    """The filters of groups that are texts and set, by name: the same for the API and the pages."""
    return given_texts(
        {
            "side": side,
            "cause": cause,
            "cluster": cluster,
            "queue": queue,
            "team": team,
            "user": user,
            "node": node,
            "assignee": assignee,
        }
    )


GroupTexts = Annotated[dict[str, str], Depends(group_texts)]


def group_filter(
    texts: Mapping[str, str], state: GroupState | None, hidden_from: str | None, *, novel: bool
) -> GroupFilter:
    """The filter of groups for the store.

    Args:
        texts: the texts that are set, by name.
        state: the state of the groups; None for all.
        hidden_from: leaves out the groups that this user has muted; None for all.
        novel: whether to keep only groups with an undecided verdict.
    """
    named: dict[str, Any] = dict(texts)
    return GroupFilter(**named, state=state, novel=novel, hidden_from=hidden_from)
