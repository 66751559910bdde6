"""The web application: the API under /api/v1, the pages and their protection."""

from collections.abc import AsyncIterator, Sequence
from functools import cache
from importlib.metadata import version
from typing import cast

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from service.errors import FaultlineError
from service.web.api import (
    automation,
    dead_letters,
    deliveries,
    events,
    export,
    failures,
    feedback,
    goodput,
    groups,
    health,
    incidents,
    labels,
    node_events,
    nodes,
    policy,
    reports,
    resubmissions,
    schemas,
)
from service.web.api import model as models_api
from service.web.api.parameters import BlankParameters, ClusterSlashes, reject_unknown_parameters
from service.web.api.people import account
from service.web.api.people import audit_log as audit_log_api
from service.web.error_responses import answers
from service.web.exception_handler import respond
from service.web.limits.request_body import BodyMemory, IntakeTurns
from service.web.pages import failures as failures_page
from service.web.pages import feedback as feedback_pages
from service.web.pages import goodput as goodput_page
from service.web.pages import groups as group_pages
from service.web.pages import incidents as incident_pages
from service.web.pages import label_queue, live, overview, search, static_files
from service.web.pages import nodes as node_pages
from service.web.pages import reports as report_pages
from service.web.pages import signatures as signature_page
from service.web.pages import subscriptions as subscription_pages
from service.web.pages.failure import log_viewer
from service.web.pages.failure import page as failure_page
from service.web.pages.operations import audit_log, model, settings
from service.web.pages.operations import automation as automation_pages
from service.web.pages.operations import dead_letters as dead_letter_pages
from service.web.pages.operations import deliveries as delivery_pages
from service.web.pages.operations import site_layers as site_layer_pages
from service.web.pages.people import account as account_page
from service.web.pages.people import login, oidc
from service.web.request_gate import API_PREFIX, HeadRequests, RequestGate
from service.web.security_middleware import SecurityMiddleware
from service.web.services import Services

PIECE_BYTES = 32 * 1024  # of a long document that is sent without a login
MAX_CONCURRENT_INTAKE = 4  # request bodies handled concurrently; others wait
# Exports before failures: otherwise `export.csv` would match the failure id.
API = (
    events,
    export,
    failures,
    resubmissions,
    automation,
    policy,
    incidents,
    groups,
    feedback,
    labels,
    models_api,
    node_events,
    nodes,
    dead_letters,
    deliveries,
    reports,
    goodput,
    schemas,
    account,
    audit_log_api,
)
PAGES = (
    overview,
    failures_page,
    failure_page,
    log_viewer,
    search,
    group_pages,
    feedback_pages,
    label_queue,
    live,
    incident_pages,
    node_pages,
    automation_pages,
    dead_letter_pages,
    delivery_pages,
    subscription_pages,
    report_pages,
    goodput_page,
    model,
    site_layer_pages,
    signature_page,
    settings,
    audit_log,
    account_page,
    login,
    oidc,
    static_files,
)


@cache
def _version() -> str:
    """The version of the installed package; its metadata are read once."""
    return version("faultline")


def create_app(services: Services) -> FastAPI:
    """Build the application over the given services. It does not own or close them."""
    app = FastAPI(
        title="Faultline",
        summary="Explains why a deep-learning job failed and what to do next.",
        version=_version(),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.services = services
    app.state.intake_turns = IntakeTurns(MAX_CONCURRENT_INTAKE)
    app.state.body_memory = BodyMemory()
    app.router.routes.extend(_routes())
    app.mount("/static", static_files.static_files(), name="static")
    for kind in (FaultlineError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, respond)
    app.add_middleware(ClusterSlashes)
    app.add_middleware(BlankParameters)
    app.add_middleware(HeadRequests)
    app.add_middleware(RequestGate, services=services)
    app.add_middleware(SecurityMiddleware, services=services)
    return app


@cache
def _routes() -> Sequence[BaseRoute]:
    """The API and the pages. All applications of a process share them, since FastAPI takes 0.3 s to prepare them."""
    api = APIRouter(dependencies=[Depends(reject_unknown_parameters)], responses=answers(408, 413, 429))  # by the gate
    for part in API:
        api.include_router(part.router)
    every = APIRouter(generate_unique_id_function=_operation)
    every.include_router(api, prefix=API_PREFIX)
    every.include_router(health.router, prefix=API_PREFIX)
    every.include_router(health.router, include_in_schema=False)
    every.add_api_route(f"{API_PREFIX}/openapi.json", _openapi, include_in_schema=False)
    for page in PAGES:
        every.include_router(page.router, include_in_schema=False)
    return every.routes


def _operation(route: APIRoute) -> str:
    return route.name


def _openapi(request: Request) -> Response:
    """The OpenAPI document; public, because it contains no data.

    Sent in pieces of one copy, so that clients that ask for it and do not read it take no memory.
    """
    app = cast("FastAPI", request.app)
    if not hasattr(app.state, "openapi_document"):
        app.state.openapi_document = bytes(JSONResponse(app.openapi()).body)
    document: bytes = app.state.openapi_document
    length = {"Content-Length": str(len(document))}
    return StreamingResponse(_pieces(document), media_type="application/json", headers=length)


async def _pieces(document: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(document), PIECE_BYTES):
        yield document[start : start + PIECE_BYTES]
