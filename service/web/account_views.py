"""The own account and its sessions, for pages and API."""

from fastapi import Request

from service.errors import Conflict
from service.people import own_account
from service.people.records import SessionRow
from service.people.repository.accounts import Account
from service.web.auth import Principal
from service.web.security_events import address_of, notice
from service.web.services import Services
from service.web.sessions import COOKIE, IDLE, cookie


def account_of(services: Services, principal: Principal) -> Account | None:
    """The account of a caller; None for an API token and for a service without a login."""
    if principal.account_name is None:
        return None
    with services.reading() as reading:
        return reading.accounts.named(principal.account_name)


def required_account(services: Services, principal: Principal) -> Account:
    """The account of a caller.

    Raises:
        Conflict: the caller has none.
    """
    found = account_of(services, principal)
    if found is None:
        raise Conflict("an API token has no account: this needs a person who logged in")
    return found


def current_session(request: Request, principal: Principal) -> str:
    """The secret of the session of a request; empty for a caller who has none."""
    return cookie(request, COOKIE) if principal.via == "cookie" else ""


def sessions(request: Request, services: Services, principal: Principal, account: Account) -> tuple[SessionRow, ...]:
    """The sessions of the own account, newest login first."""
    with services.reading() as reading:
        return reading.sessions.of_account(account.id, current_session(request, principal), idle=IDLE)


def end_session(request: Request, services: Services, principal: Principal, session_id: str) -> None:
    """End one session of the own account.

    Raises:
        Conflict: the caller has no account.
        NotFound: the account has no such session.
    """
    account = required_account(services, principal)
    with services.store.unit_of_work() as work:
        work.sessions.end(account.id, session_id)
        after = {"address": address_of(request), "session": session_id}
        work.audit_log.append(account.name, "session.ended", f"account/{account.name}", after=after)
    notice(services, "session.ended", request, who=account.name)


def end_other_sessions(request: Request, services: Services, principal: Principal) -> int:
    """End all sessions of the own account but the one of the request; returns their number.

    Raises:
        Conflict: the caller has no account.
    """
    account = required_account(services, principal)
    keep = current_session(request, principal)
    return _end_all(request, services, account, actor=account.name, keep=keep)


def end_sessions_of(request: Request, services: Services, principal: Principal, name: str) -> int:
    """End all sessions of any account, by an administrator; returns their number.

    Raises:
        NotFound: no account has this name.
    """
    with services.reading() as reading:
        account = reading.accounts.named(name)
    return _end_all(request, services, account, actor=principal.name)


def change_password(request: Request, services: Services, principal: Principal, *, current: str, new: str) -> int:
    """Change the password of the own account; returns the number of other sessions, which ended.

    Raises:
        Conflict: the caller has no account with a password.
        InvalidInput: the current password is wrong, or the new one is not acceptable.
        TooManyRequests: too many wrong passwords.
    """
    account = required_account(services, principal)
    ended = own_account.change_password(
        services.store,
        account,
        address=address_of(request),
        current=current,
        new=new,
        keep=current_session(request, principal),
    )
    notice(services, "password.changed", request, who=account.name)
    return ended


def _end_all(request: Request, services: Services, account: Account, *, actor: str, keep: str = "") -> int:
    with services.store.unit_of_work() as work:
        ended = work.sessions.end_others(account.id, keep)
        after = {"address": address_of(request), "sessions": ended}
        work.audit_log.append(actor, "sessions.ended", f"account/{account.name}", after=after)
    notice(services, "sessions.ended", request, who=actor, account=account.name)
    return ended
