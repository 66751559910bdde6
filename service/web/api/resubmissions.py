"""Resubmissions: leased, acknowledged or failed by hooks; requested, held or forbidden by people."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from service.contracts.advice import AckResult
from service.contracts.event import Key
from service.errors import FieldError, Forbidden, NotFound
from service.resubmissions.records import HookAnswer, Lease, Request, RequestState
from service.web import automation_views as views
from service.web.api.parameters import (
    CommentedAction,
    Cursor,
    Id,
    Limit,
    OwnersAction,
    OwnersDecision,
    RequestBody,
    Text,
)
from service.web.auth import HOOK, READ, Principal
from service.web.error_responses import answers
from service.web.services import InjectedServices, Services

router = APIRouter(tags=["resubmissions"])
RequestId = Annotated[str, Path(max_length=40, description="as given in the lease")]
Token = Annotated[str, Field(min_length=1, max_length=100)]
Detail = Annotated[str, Field(max_length=4_000)]


class LeaseRequest(RequestBody):
    """A lease request. `hook` identifies the hook (kind and host) and is shown to people."""

    hook: Key
    cluster: Key
    max: Annotated[int, Field(ge=1, le=100, strict=True, description="maximum number of requests")] = 10
    seconds: Annotated[int, Field(ge=1, le=3_600, strict=True, description="duration of the lease in seconds")] = 60


class Ack(RequestBody):
    """Result of a leased request. `new_job_id`: for a submission; absent for a requeue of the same job."""

    lease_token: Token
    result: AckResult
    new_job_id: Key | None = None
    detail: Detail | None = None


class Fail(RequestBody):
    """Failure of a hook. With `retry_after_s` the request is leased again then or later; without it, it ends."""

    lease_token: Token
    error: Detail
    retry_after_s: Annotated[float, Field(ge=0, le=86_400)] | None = None


class RequestsPage(BaseModel):
    """One page of requests, newest first."""

    items: list[Request]
    next_cursor: str | None


@router.get("/resubmissions", dependencies=[READ], responses=answers(401, 403, 422, 503))
def get_resubmissions(
    services: InjectedServices,
    state: Annotated[RequestState | None, Query()] = None,
    cluster: Text = None,
    failure: Annotated[int | None, Query(ge=1, le=2**63 - 1, description="id of the failure")] = None,
    incident: Annotated[
        int | None, Query(ge=1, le=2**63 - 1, description="id of the incident that holds the request")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> RequestsPage:
    """Resubmission requests, newest first; state shadow: recorded but not executed."""
    with services.reading() as reading:
        page = reading.requests.page(
            state=state,
            cluster=cluster or None,
            failure_id=failure,
            incident_id=incident,
            limit=limit,
            cursor=cursor,
        )
    return RequestsPage(items=list(page.items), next_cursor=page.next_cursor)


@router.get("/resubmissions/{request_id}", dependencies=[READ], responses=answers(401, 403, 404, 422, 503))
def get_resubmission(services: InjectedServices, request_id: RequestId) -> Request:
    """One request."""
    with services.reading() as reading:
        return reading.requests.get(request_id)


@router.post("/resubmissions:lease", responses=answers(401, 403, 422, 503))
def lease_resubmissions(
    services: InjectedServices, body: LeaseRequest, principal: Annotated[Principal, HOOK]
) -> list[Lease]:
    """Lease requests of a cluster that may be executed now; each is exclusive until its lease expires.

    Kill switch, incidents, storms and rate limits are checked in the same transaction; an expired request is never
    leased. Answer each with `:ack` or `:fail`; an unanswered one is leased again with a higher `lease_count`.
    """
    if not principal.binding.allows(body.cluster) or principal.binding.teams:
        expected = (
            f"a cluster of this token: {', '.join(principal.binding.clusters) or 'none; the token is bound to teams'}"
        )
        raise Forbidden("this token may not lease on this cluster", (FieldError("cluster", expected, body.cluster),))
    # The name in the body is only a description: two hooks may use one token, and a token any name.
    hook = body.hook if principal.via == "open" else f"{body.hook} ({principal.name})"
    return services.automation.lease(hook, body.cluster, limit=body.max, seconds=body.seconds)


@router.post("/resubmissions/{request_id}:ack", responses=answers(401, 403, 404, 409, 422, 503))
def ack_resubmission(
    services: InjectedServices, principal: Annotated[Principal, HOOK], request_id: RequestId, body: Ack
) -> Request:
    """Report the result of a leased request. Idempotent.

    409: the request was withdrawn in the meantime (the result is recorded nevertheless), or another lease is active.
    """
    _check_cluster(services, principal, request_id)
    answer = HookAnswer(body.result, body.new_job_id, body.detail)
    return services.automation.ack(request_id, body.lease_token, answer)


@router.post("/resubmissions/{request_id}:fail", responses=answers(401, 403, 404, 409, 422, 503))
def fail_resubmission(
    services: InjectedServices, principal: Annotated[Principal, HOOK], request_id: RequestId, body: Fail
) -> Request:
    """Report that the request could not be carried out; 409 as with `:ack`."""
    _check_cluster(services, principal, request_id)
    return services.automation.fail(request_id, body.lease_token, body.error, body.retry_after_s)


@router.post("/failures/{failure_id}:resubmit", responses=answers(401, 403, 404, 409, 422, 503))
def resubmit_failure(failure_id: Id, action: CommentedAction) -> Request:
    """Resubmit this job now, by a person's decision; 409 if automation is stopped or a hook is already executing it."""
    return views.resubmit(action.services, failure_id, action.actor, action.comment)


@router.post("/failures/{failure_id}:hold", responses=answers(401, 403, 404, 409, 422, 503))
def hold_failure(failure_id: Id, action: CommentedAction) -> list[Request]:
    """Hold this job and its resubmissions until a person requests `:resubmit`."""
    return views.hold(action.services, failure_id, action.actor, action.comment)


@router.post("/failures/{failure_id}:never", responses=answers(401, 403, 404, 409, 422, 503))
def never_failure(failure_id: Id, action: OwnersAction) -> list[Request]:
    """Never resubmit this job or its resubmissions automatically; waiting requests are withdrawn.

    For operators (scope act), and for the owner of the job unless somebody else decided about it (403).
    """
    views.check_owner(action, failure_id)
    return views.never(action.services, failure_id, action.actor, action.comment)


@router.post("/failures/{failure_id}:lift", responses=answers(401, 403, 404, 422, 503))
def lift_failure(failure_id: Id, action: OwnersDecision) -> list[Request]:
    """Undo `:hold` or `:never` of this job: automation decides again, and a request that was held waits again.

    For operators (scope act), and for the owner of the job unless somebody else decided about it (403). Nothing changes
    if nobody decided about the job.
    """
    views.check_owner(action, failure_id)
    return views.lift(action.services, failure_id, action.actor)


def _check_cluster(services: Services, principal: Principal, request_id: str) -> None:
    """Check that a hook answers a request of its own cluster.

    Raises:
        NotFound: no such request, or it is of another cluster.
    """
    if not principal.binding:
        return
    with services.reading() as reading:
        cluster = reading.requests.get(request_id).cluster
    if not principal.binding.allows(cluster):
        raise NotFound(f"no request {request_id[:40]}")
