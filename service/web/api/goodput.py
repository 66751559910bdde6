"""GET /goodput: goodput and reliability figures."""

from fastapi import APIRouter
from pydantic import BaseModel

from service.goodput import definitions
from service.goodput.records import Goodput
from service.statistics.records import Scope
from service.web import goodput_views
from service.web.api.parameters import Since, Text, Until
from service.web.auth import READ
from service.web.error_responses import answers
from service.web.goodput_views import Cost
from service.web.services import InjectedServices

router = APIRouter(tags=["goodput"])


class FigureDefinition(BaseModel):
    """The definition of one figure and its source."""

    title: str
    text: str
    source: str
    url: str | None


class GoodputAnswer(BaseModel):
    """The figures, what they cost (null without a price per GPU-hour), and their definitions by name."""

    figures: Goodput
    cost: Cost | None
    definitions: dict[str, FigureDefinition]


@router.get("/goodput", dependencies=[READ], responses=answers(401, 403, 422, 503))
def get_goodput(
    services: InjectedServices,
    since: Since = None,
    until: Until = None,
    cluster: Text = None,
    team: Text = None,
    queue: Text = None,
) -> GoodputAnswer:
    """Goodput and reliability of the attempts that ended in a period, by default the 28 days before `until`.

    GPU-hours, seconds for times, hours for MTTF, shares from 0 to 1. Periods with many jobs may be up to 15 minutes
    old.
    """
    found = goodput_views.goodput(services, since, until, Scope(cluster or None, team or None, queue or None)).figures
    return GoodputAnswer(
        figures=found,
        cost=goodput_views.cost(services, found),
        definitions={
            key: FigureDefinition(title=one.title, text=one.text, source=one.source.title, url=one.source.url)
            for key, one in definitions.load().figures.items()
        },
    )
