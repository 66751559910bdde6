"""GET /model: which classifier speaks, how right it is, and what it does not know yet."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.groups.records import GroupFilter
from service.web import group_views, model_views, views
from service.web.auth import READ
from service.web.pages.causes import by_side
from service.web.pages.forms import Text
from service.web.pages.model_figures import SIDE, Figures, figures, wilson
from service.web.pages.templating import render
from service.web.services import InjectedServices, Services

router = APIRouter(dependencies=[READ])
DEEPEST = 4
LONGEST_LIST = 30
NOVEL = 20
LOOKED_BACK = "28d"


@cache
def measured() -> Figures:
    """The figures of the packaged model, on held-out kinds of the packaged corpus."""
    return figures(orjson.loads(files("service.recommend").joinpath("measured.json").read_bytes()))


@router.get("/model")
def model(request: Request, services: InjectedServices, notice: Text = None) -> HTMLResponse:
    """The classifier in use, its figures, and the novelty queue."""
    manifest = services.model.manifest if services.model is not None else {}
    known = measured()
    novel = group_views.groups(services, GroupFilter(novel=True), limit=NOVEL, sort="-gpu_hours_lost")
    context = {
        "model": services.model,
        "manifest": list(flat(manifest)),
        "versions": model_views.versions(services),
        "figures": known,
        "same": manifest.get("data") == known.data,
        "side_length": SIDE,
        "novel": novel,
        "audited": audited(services),
        "contested": contested(services),
        "causes": by_side(),
        "notice": notice,
    }
    return render(request, "model.html", context)


def audited(services: Services) -> dict[str, Any]:
    """How many of the weekly samples were judged, how many as the service had said, with the 95 % interval."""
    judged = [one for sample in group_views.audits(services).values() for one in sample if one.right is not None]
    right = sum(bool(one.right) for one in judged)
    return {"judged": len(judged), "right": right, "interval": wilson(right, len(judged))}


def contested(services: Services) -> list[dict[str, Any]]:
    """By cause: failures of the last four weeks, and how many of them their owners contested."""
    with services.store.reading() as reading:
        contests = reading.feedback.contests(services.clock.now() - timedelta(days=28))
    if not contests:
        return []
    seen = {share.key: share.failures for share in views.stats(services, LOOKED_BACK).by_cause}
    return [
        {"cause": cause, "contested": count, "failures": max(seen.get(cause, 0), count)}
        for cause, count in sorted(contests.items(), key=lambda item: (-item[1], item[0]))
    ]


def flat(tree: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """A manifest as names and values, nested ones with dots."""
    for name, value in tree.items():
        if isinstance(value, Mapping) and depth < DEEPEST:
            yield from flat(value, f"{prefix}{name}.", depth + 1)
        elif isinstance(value, list | tuple):
            more = f" … {len(value) - LONGEST_LIST} more" if len(value) > LONGEST_LIST else ""
            yield f"{prefix}{name}", ", ".join(str(one) for one in value[:LONGEST_LIST]) + more
        else:
            yield f"{prefix}{name}", f"{value:.4g}" if isinstance(value, float) else str(value)
