"""Static files: style sheets, scripts and icons; also GET /favicon.ico, which browsers request for plain-text logs."""

from collections.abc import Sequence
from importlib.resources import files
from urllib.parse import parse_qs

from fastapi import APIRouter
from fastapi.responses import Response
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from service.web.pages.templating import content_version

router = APIRouter()
# A versioned address changes with the content of its file, so that browsers need not ask again.
_FOREVER = "public, max-age=31536000, immutable"
_A_DAY = "public, max-age=86400"
_NOT = "no-store"


class VersionedFiles(StaticFiles):
    """Static files with the time for which browsers keep them."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """One file."""
        response = await super().get_response(path, scope)
        versions = parse_qs(scope["query_string"].decode("latin-1")).get("v", [])
        response.headers["Cache-Control"] = _kept(path, versions)
        return response


def _kept(path: str, versions: Sequence[str]) -> str:
    """How long browsers keep a file. During an upgrade, a page may ask an older process for the file of a newer one."""
    if not versions:
        return _A_DAY
    return _FOREVER if versions == [content_version(path)] else _NOT


def static_files() -> ASGIApp:
    """The folder of static files, compressed. Pages are not: they contain secrets such as form tokens."""
    return GZipMiddleware(VersionedFiles(directory=str(files("service.web").joinpath("static"))), compresslevel=6)


@router.get("/favicon.ico")
def icon() -> Response:
    """The icon."""
    content = files("service.web").joinpath("static/icon.svg").read_bytes()
    return Response(content, media_type="image/svg+xml", headers={"Cache-Control": _A_DAY})
