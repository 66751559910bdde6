"""GET /settings: the effective settings, accounts and tokens; an administrator ends sessions and manages tokens."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.errors import Conflict, FaultlineError, FieldError, InvalidInput
from service.people import api_tokens
from service.people.repository.tokens import SCOPES
from service.web import account_views
from service.web.auth import ADMIN, tokens_required
from service.web.pages.forms import Text, UserForm, redirect
from service.web.pages.templating import render
from service.web.services import InjectedServices, Services
from service.web.sessions import IDLE

router = APIRouter(dependencies=[ADMIN])
Names = Annotated[str, Form(max_length=2_000)]


@dataclass(frozen=True, slots=True)
class TokenForm:
    """The form that creates a token, as it was sent; `errors`: why it was refused."""

    name: str = ""
    purposes: tuple[str, ...] = ()
    clusters: str = ""
    teams: str = ""
    days: str = ""
    errors: tuple[FieldError, ...] = ()


@router.get("/settings")
def settings(request: Request, services: InjectedServices, notice: Text = None) -> HTMLResponse:
    """The effective settings, the accounts and the API tokens, without secrets."""
    return _page(request, services, notice=notice)


@router.get("/settings/tokens")
def tokens() -> RedirectResponse:
    """The list of tokens: here one arrives by reloading the answer to the form."""
    return redirect("/settings#tokens")


@router.post("/settings/tokens")
def create_token(
    request: Request,
    form: UserForm,
    name: Annotated[str, Form(max_length=1_000)] = "",
    purpose: Annotated[tuple[str, ...], Form(max_length=20)] = (),
    clusters: Names = "",
    teams: Names = "",
    days: Annotated[str, Form(max_length=40)] = "",
) -> HTMLResponse:
    """Create a token; the page shows its secret once, or what is wrong with the form."""
    form.principal.require("admin")
    services, sent = form.services, TokenForm(name.strip(), purpose, clusters, teams, days.strip())
    try:
        _check_first(services, purpose)
        _, secret = api_tokens.create(
            services.store,
            services.clock,
            sent.name,
            set(purpose),
            actor=form.principal.name,
            clusters=_names(clusters),
            teams=_names(teams),
            days=_days(sent.days),
        )
    except (Conflict, InvalidInput) as error:
        return _page(request, services, sent=_refused(sent, error), status=error.status)
    return _page(request, services, created=(sent.name, secret))


@router.post("/settings/tokens/revoke")
def revoke_token(form: UserForm, name: Annotated[str, Form(max_length=1_000)] = "") -> RedirectResponse:
    """Revoke a token at once."""
    form.principal.require("admin")
    api_tokens.revoke(form.services.store, name, actor=form.principal.name)
    return redirect("/settings?notice=token_revoked#tokens")


@router.post("/settings/accounts/end-sessions")
def end_sessions(request: Request, form: UserForm, name: Annotated[str, Form(max_length=200)] = "") -> RedirectResponse:
    """End all sessions of an account."""
    form.principal.require("admin")
    account_views.end_sessions_of(request, form.services, form.principal, name)
    return redirect("/settings?notice=sessions_ended")


def _page(
    request: Request,
    services: Services,
    *,
    notice: str | None = None,
    sent: TokenForm | None = None,
    created: tuple[str, str] | None = None,
    status: int = 200,
) -> HTMLResponse:
    with services.reading() as reading:
        tokens, accounts, sessions = reading.tokens.list(), reading.accounts.list(), reading.sessions.numbers(idle=IDLE)
    context = {
        "settings": services.settings,
        "tokens": tokens,
        "accounts": accounts,
        "sessions": sessions,
        "open": not tokens_required(services),
        "notice": notice,
        "scopes": SCOPES,
        "sent": sent or TokenForm(),
        "created": created,
        "most_days": api_tokens.MOST_DAYS,
    }
    return render(request, "operations/settings.html", context, status=status)


def _check_first(services: Services, purposes: tuple[str, ...]) -> None:
    """Check that the first token of a service that accepts everybody does not lock its administrator out.

    Raises:
        InvalidInput: it has not the purpose admin.
    """
    if "admin" not in purposes and not tokens_required(services):
        expected = "admin for the first token: without it nobody could open this page afterwards"
        raise InvalidInput(expected, (FieldError("scopes", expected),))


def _names(text: str) -> tuple[str, ...]:
    """The names of a field, which are separated by commas."""
    return tuple(one.strip() for one in text.split(",") if one.strip())


def _days(text: str) -> int | None:
    """The number of days of a field; None if it is empty.

    Raises:
        InvalidInput: it is not a number of days.
    """
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(api_tokens.MOST_DAYS))):
        expected = f"1 to {api_tokens.MOST_DAYS}"
        raise InvalidInput(f"days: expected {expected}", (FieldError("days", expected, text),))
    return int(text)


def _refused(sent: TokenForm, error: FaultlineError) -> TokenForm:
    errors = error.errors or (FieldError("name", error.detail),)
    return TokenForm(sent.name, sent.purposes, sent.clusters, sent.teams, sent.days, errors)
