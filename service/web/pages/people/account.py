"""GET /account: the own account with its sessions, a new password, and the end of sessions."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.errors import FieldError, InvalidInput, TooManyRequests
from service.people.passwords import LONGEST, SHORTEST
from service.web import account_views
from service.web.auth import OWN, Principal
from service.web.pages.forms import Text, UserForm, redirect
from service.web.pages.templating import render
from service.web.services import InjectedServices, Services

router = APIRouter()
Password = Annotated[str, Form(max_length=1_000)]


@router.get("/account")
def account(
    request: Request, services: InjectedServices, principal: Annotated[Principal, OWN], notice: Text = None
) -> HTMLResponse:
    """The account of the caller; the page of an API token says that it has none."""
    return _page(request, services, principal, notice=notice)


@router.post("/account/password", response_model=None)
def change_password(
    request: Request,
    form: UserForm,
    current_password: Password = "",
    new_password: Password = "",
    repeated: Password = "",
) -> HTMLResponse | RedirectResponse:
    """Change the password; the page shows what is wrong with a refused one."""
    refused: InvalidInput | TooManyRequests | None = None
    if new_password != repeated:
        refused = InvalidInput("repeated", (FieldError("repeated", "the same text as the new password"),))
    else:
        try:
            account_views.change_password(
                request, form.services, form.principal, current=current_password, new=new_password
            )
        except (InvalidInput, TooManyRequests) as error:
            refused = error
    if refused is not None:
        return _page(request, form.services, form.principal, refused=refused)
    return redirect("/account?notice=password_changed")


@router.post("/account/sessions/end")
def end_sessions(
    request: Request, form: UserForm, session: Annotated[str, Form(max_length=100)] = ""
) -> RedirectResponse:
    """End one session, or all others if none is named."""
    if session:
        account_views.end_session(request, form.services, form.principal, session)
    else:
        account_views.end_other_sessions(request, form.services, form.principal)
    return redirect("/account?notice=sessions_ended")


def _page(
    request: Request,
    services: Services,
    principal: Principal,
    *,
    notice: str | None = None,
    refused: InvalidInput | TooManyRequests | None = None,
) -> HTMLResponse:
    with services.snapshot() as snapshot:
        account = account_views.account_of(snapshot, principal)
        found = () if account is None else account_views.sessions(request, snapshot, principal, account)
        context = {
            "account": account,
            "sessions": found,
            "notice": notice,
            "refused": refused,
            "shortest": SHORTEST,
            "longest": LONGEST,
        }
        headers = {"Retry-After": str(refused.retry_after_s)} if isinstance(refused, TooManyRequests) else None
        status = 200 if refused is None else refused.status
        return render(request, "account.html", context, services=snapshot, status=status, headers=headers)
