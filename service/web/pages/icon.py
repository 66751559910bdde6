"""GET /favicon.ico: requested by browsers for responses that cannot link to it (plain-text logs)."""

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response

router = APIRouter()


@router.get("/favicon.ico")
def icon() -> Response:
    """The icon."""
    content = files("service.web").joinpath("static/icon.svg").read_bytes()
    return Response(content, media_type="image/svg+xml", headers={"Cache-Control": "public, max-age=86400"})
