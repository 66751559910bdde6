"""GET /model: the classifier in use, its accuracy, and undecided groups. GET /model/drift: recent failures compared."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any, get_args

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.drift.records import DriftMeasure
from service.groups.records import GroupFilter
from service.reports.audit_accuracy import DEFINITION, AuditAccuracy, accuracy
from service.web import group_views, model_views, views
from service.web.auth import READ
from service.web.pages.forms import Text, causes_by_side
from service.web.pages.operations.model_figures import SIDE, Figures, figures
from service.web.pages.templating import render
from service.web.services import InjectedServices, Services

router = APIRouter(dependencies=[READ])
MAX_DEPTH = 4
MAX_LIST_ITEMS = 30
NOVEL = 20
WEAKEST = 3
CONTEST_PERIOD = "28d"


@cache
def measured() -> Figures:
    """Figures of the packaged model, measured on held-out kinds of the packaged corpus."""
    return figures(orjson.loads(files("service.recommend").joinpath("measured.json").read_bytes()))


@router.get("/model")
def model(request: Request, services: InjectedServices, notice: Text = None) -> HTMLResponse:
    """The classifier in use, its figures, and the novelty queue."""
    manifest = services.model.manifest if services.model is not None else {}
    known = measured()
    with services.snapshot() as snapshot:
        novel = group_views.groups(snapshot, GroupFilter(novel=True), limit=NOVEL, sort="-gpu_hours_lost")
        context = {
            "model": services.model,
            "manifest": list(flat(manifest)),
            "versions": model_views.versions(snapshot),
            "figures": known,
            "same": manifest.get("data") == known.data,
            "side_length": SIDE,
            "held_out": held_out if "side" in (held_out := manifest.get("held_out") or {}) else {},
            "weakest": known.by_weakness[:WEAKEST],
            "novel": novel,
            "audited": audited(snapshot),
            "audit_definition": DEFINITION,
            "contested": contested(snapshot),
            "causes": causes_by_side(),
            "notice": notice,
        }
        return render(request, "operations/model.html", context, services=snapshot)


def audited(services: Services) -> AuditAccuracy:
    """The accuracy from the samples of the last weeks."""
    with services.reading() as reading:
        weeks = reading.audit_samples.audit_weeks(limit=group_views.AUDITS)
        return accuracy(reading.audit_samples.audit_results(weeks))


def contested(services: Services) -> list[dict[str, Any]]:
    """Failures and contested failures of the last four weeks, by cause."""
    with services.reading() as reading:
        contests = reading.feedback.contests(services.clock.now() - timedelta(days=28))
    if not contests:
        return []
    seen = {share.key: share.failures for share in views.stats(services, CONTEST_PERIOD).by_cause}
    return [
        {"cause": cause, "contested": count, "failures": max(seen.get(cause, 0), count)}
        for cause, count in sorted(contests.items(), key=lambda item: (-item[1], item[0]))
    ]


def flat(tree: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """A manifest as names and values; nested names are joined with dots."""
    for name, value in tree.items():
        if isinstance(value, Mapping) and depth < MAX_DEPTH:
            yield from flat(value, f"{prefix}{name}.", depth + 1)
        elif isinstance(value, list | tuple):
            more = f" … {len(value) - MAX_LIST_ITEMS} more" if len(value) > MAX_LIST_ITEMS else ""
            yield f"{prefix}{name}", ", ".join(str(one) for one in value[:MAX_LIST_ITEMS]) + more
        else:
            yield f"{prefix}{name}", f"{value:.4g}" if isinstance(value, float) else str(value)


@router.get("/model/drift")
def drift(request: Request, services: InjectedServices) -> HTMLResponse:
    """The newest comparison."""
    with services.snapshot() as snapshot:
        with snapshot.reading() as reading:
            context = {"report": reading.drift.latest(), "measures": get_args(DriftMeasure)}
        return render(request, "operations/drift.html", context, services=snapshot)
