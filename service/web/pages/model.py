"""GET /model: which classifier speaks."""

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.web.auth import READ
from service.web.pages.templating import render
from service.web.services import Given

router = APIRouter(dependencies=[READ])
DEEPEST = 4
LONGEST_LIST = 30


@router.get("/model")
def model(request: Request, services: Given) -> HTMLResponse:
    """The classifier in use and what stands in its manifest."""
    manifest = services.model.manifest if services.model is not None else {}
    return render(request, "model.html", {"model": services.model, "manifest": list(flat(manifest))})


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
