"""GET /models and /drift: the models that produced verdicts, and recent failures compared with earlier ones."""

from fastapi import APIRouter
from pydantic import BaseModel

from service.drift.records import DriftReport
from service.web import model_views
from service.web.auth import READ
from service.web.error_responses import answers
from service.web.model_views import ModelVersion
from service.web.services import InjectedServices

router = APIRouter(tags=["model"])


class ModelsAnswer(BaseModel):
    """All models; always one page."""

    items: list[ModelVersion]
    next_cursor: None = None


@router.get("/models", dependencies=[READ], responses=answers(401, 403, 503))
def get_models(services: InjectedServices) -> ModelsAnswer:
    """All models that produced verdicts, with counts and times; the one in use first."""
    return ModelsAnswer(items=list(model_views.versions(services)))


class DriftAnswer(BaseModel):
    """The newest comparison; null until the first one is made."""

    report: DriftReport | None


@router.get("/drift", dependencies=[READ], responses=answers(401, 403, 503))
def get_drift(services: InjectedServices) -> DriftAnswer:
    """Recent failures compared with earlier ones, by cluster; made each hour. Nothing is retrained because of it."""
    with services.reading() as reading:
        return DriftAnswer(report=reading.drift.latest())
