"""GET /settings: the effective settings, accounts and tokens, without secrets; an administrator ends sessions."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.web import account_views
from service.web.auth import ADMIN, tokens_required
from service.web.pages.forms import Text, UserForm, redirect
from service.web.pages.templating import render
from service.web.services import InjectedServices
from service.web.sessions import IDLE

router = APIRouter(dependencies=[ADMIN])


@router.get("/settings")
def settings(request: Request, services: InjectedServices, notice: Text = None) -> HTMLResponse:
    """The effective settings, the accounts and the API tokens, without secrets."""
    with services.reading() as reading:
        tokens, accounts, sessions = reading.tokens.list(), reading.accounts.list(), reading.sessions.numbers(idle=IDLE)
    return render(
        request,
        "operations/settings.html",
        {
            "settings": services.settings,
            "tokens": tokens,
            "accounts": accounts,
            "sessions": sessions,
            "open": not tokens_required(services),
            "notice": notice,
        },
    )


@router.post("/settings/accounts/end-sessions")
def end_sessions(request: Request, form: UserForm, name: Annotated[str, Form(max_length=200)] = "") -> RedirectResponse:
    """End all sessions of an account."""
    form.principal.require("admin")
    account_views.end_sessions_of(request, form.services, form.principal, name)
    return redirect("/settings?notice=sessions_ended")
