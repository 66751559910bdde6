"""GET and POST /login, POST /logout: an API token pasted once becomes a cookie."""

from typing import Annotated, cast
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.web.auth import check_form, find, tokens_required
from service.web.pages.forms import Text
from service.web.pages.templating import render, set_cookie
from service.web.services import Given
from service.web.sessions import COOKIE, LASTS, Sessions

router = APIRouter()


@router.get("/login")
def login(request: Request, services: Given, next: Text = None) -> HTMLResponse:  # noqa: A002 - the name in the URL
    """The form."""
    told = {"next": here(next), "wrong": False, "needed": tokens_required(services)}
    return render(request, "login.html", told)


@router.post("/login", response_model=None)
def log_in(
    request: Request,
    services: Given,
    token: Annotated[str, Form(max_length=1_000)] = "",
    form_token: Annotated[str, Form(max_length=200)] = "",
    next: Annotated[str, Form(max_length=2_000)] = "/",  # noqa: A002 - the name in the form
) -> HTMLResponse | RedirectResponse:
    """Check the token; then on to the page that was wanted."""
    check_form(request, form_token)
    if find(services, token.strip()) is None:
        return render(request, "login.html", {"next": here(next), "wrong": True, "needed": True}, status=401)
    sessions = cast("Sessions", request.app.state.sessions)
    sessions.close(request.cookies.get(COOKIE, ""))
    response = RedirectResponse(here(next), 303)
    seconds = int(LASTS.total_seconds())
    set_cookie(request, response, COOKIE, sessions.open(token.strip()), seconds=seconds)
    return response


@router.post("/logout")
def log_out(request: Request, form_token: Annotated[str, Form(max_length=200)] = "") -> RedirectResponse:
    """Forget the session."""
    check_form(request, form_token)
    cast("Sessions", request.app.state.sessions).close(request.cookies.get(COOKIE, ""))
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return response


def here(where: str | None) -> str:
    """A path of this server, whatever was asked for: never another site's address."""
    wanted = where or "/"
    if not wanted.startswith("/") or wanted.startswith("//") or "\\" in wanted or not wanted.isprintable():
        return "/"
    parts = urlsplit(wanted)
    return wanted if not parts.scheme and not parts.netloc else "/"
