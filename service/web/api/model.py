"""GET /models: the models that produced verdicts, and the one in use."""

from fastapi import APIRouter
from pydantic import BaseModel

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
