"""Liveness, readiness and metrics. Liveness and readiness are public and contain no data."""

from typing import Literal, cast

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from service.errors import ConfigurationError, FieldError, Unavailable
from service.web.auth import READ
from service.web.error_responses import answers
from service.web.services import InjectedServices

router = APIRouter(tags=["health"])
METRICS_TYPE = "text/plain; version=1.0.0; charset=utf-8"


class Alive(BaseModel):
    """The process answers."""

    status: Literal["alive"] = "alive"


class Ready(BaseModel):
    """Events are accepted and pages are served."""

    status: Literal["ready"] = "ready"
    database: Literal["sqlite", "postgresql"]
    model: str


@router.get("/health/live")
async def live() -> Alive:
    """Whether the process answers."""
    return Alive()


@router.get("/health/ready", responses=answers(503))
def ready(services: InjectedServices) -> Ready:
    """Whether events can be accepted: the database answers with the right schema, and a model is loaded."""
    try:
        services.store.check()
    except Unavailable:
        raise Unavailable("the database does not answer", (FieldError("database", "an answer"),)) from None
    except ConfigurationError as error:
        raise Unavailable(error.detail, (FieldError("database", "the schema of this version"),)) from None
    if services.model is None:
        raise Unavailable("no model is loaded", (FieldError("model", "a trained model"),))
    database = cast("Literal['sqlite', 'postgresql']", services.store.dialect)
    return Ready(database=database, model=services.model.name())


@router.get("/metrics", dependencies=[READ], response_class=PlainTextResponse, responses=answers(401, 403, 503))
def metrics(services: InjectedServices) -> PlainTextResponse:
    """Metrics of the service in the Prometheus text format."""
    return PlainTextResponse(services.telemetry.render(), media_type=METRICS_TYPE)
