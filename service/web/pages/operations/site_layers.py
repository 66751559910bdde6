"""GET /model/layers: the site layers, the gate's results, promotion, refusal and rollback."""

from typing import Annotated

from fastapi import APIRouter, Form, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.learning import registry
from service.learning.promotion import BY_A_PERSON
from service.web.auth import ADMIN, READ
from service.web.pages.forms import ActForm, Text, redirect
from service.web.pages.templating import render
from service.web.services import InjectedServices

router = APIRouter()
LayerId = Annotated[str, Path(pattern=r"^site-[0-9a-f]{12}$")]
Why = Annotated[str, Form(max_length=500)]
Seen = Annotated[int | None, Form(ge=0)]  # the last promotion that the page knew


@router.get("/model/layers", dependencies=[READ])
def layers(request: Request, services: InjectedServices, notice: Text = None) -> HTMLResponse:
    """The stored layers, and the changes of the model in use."""
    with services.snapshot() as snapshot:
        with snapshot.reading() as reading:
            found, changes = registry.layers(reading, services.promotions), reading.site_layers.promotions()
            seen = reading.site_layers.last_promotion()
        context = {"layers": found, "promotions": changes, "seen": seen, "notice": notice}
        return render(request, "operations/site_layers.html", context, services=snapshot)


@router.get("/model/layers/{layer_id}", dependencies=[READ])
def layer(request: Request, services: InjectedServices, layer_id: LayerId, notice: Text = None) -> HTMLResponse:
    """One layer with the gate's figures and its shadow run."""
    with services.snapshot() as snapshot:
        with snapshot.reading() as reading:
            detail, seen = registry.layer(reading, services.promotions, layer_id), reading.site_layers.last_promotion()
        context = {"detail": detail, "seen": seen, "notice": notice}
        return render(request, "operations/site_layer.html", context, services=snapshot)


@router.post("/model/layers/{layer_id}/promote", dependencies=[ADMIN])
def promote(form: ActForm, layer_id: LayerId, reason: Why = "", after: Seen = None) -> RedirectResponse:
    """Put a layer in use, in place of what its reader saw."""
    form.principal.require("admin")
    why = reason.strip() or BY_A_PERSON
    form.services.promotions.promote(layer_id, form.actor, reason=why, instead_of=after)
    return redirect(f"/model/layers/{layer_id}?notice=layer_promoted")


@router.post("/model/layers/{layer_id}/refuse", dependencies=[ADMIN])
def refuse(form: ActForm, layer_id: LayerId, reason: Why = "") -> RedirectResponse:
    """Refuse a candidate."""
    form.principal.require("admin")
    form.services.promotions.refuse(layer_id, form.actor, reason=reason.strip() or None)
    return redirect(f"/model/layers/{layer_id}?notice=layer_refused")


@router.post("/model/rollback")
def rollback(form: ActForm, after: Seen = None) -> RedirectResponse:
    """Return to the model before the one in use, once for all who saw it."""
    form.services.promotions.rollback(form.actor, instead_of=after)
    return redirect("/model/layers?notice=layer_rolled_back")
