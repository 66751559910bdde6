"""GET /models: which models gave verdicts, and which one speaks now."""

from fastapi import APIRouter
from pydantic import BaseModel

from service.web import model_views
from service.web.auth import READ
from service.web.error_responses import answers
from service.web.model_views import ModelVersion
from service.web.services import InjectedServices

router = APIRouter(tags=["model"])


class ModelsAnswer(BaseModel):
    """All of them; there is never a further page."""

    items: list[ModelVersion]
    next_cursor: None = None


@router.get("/models", dependencies=[READ], responses=answers(401, 403, 503))
def get_models(services: InjectedServices) -> ModelsAnswer:
    """Every model that gave verdicts, with how many, since when and until when; the one in use first."""
    return ModelsAnswer(items=list(model_views.versions(services)))
