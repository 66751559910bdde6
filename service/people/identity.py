"""Externally authenticated people: an account is created or updated from the claims at each login."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.db.session import UnitOfWork
from service.errors import Forbidden, NotFound
from service.people.repository.accounts import Account, AccountReader, AccountSource, Role
from service.people.roles import RoleMap


@dataclass(frozen=True, slots=True)
class ClaimNames:
    """The names of the claims that are used."""

    user: str = "preferred_username"  # the account's name and the user name of the person's jobs
    groups: str = "groups"
    teams: str | None = None


def log_in_identity(
    work: UnitOfWork, source: AccountSource, claims: Mapping[str, Any], names: ClaimNames, roles: RoleMap
) -> Account:
    """The account of a person with these claims, created or updated.

    Raises:
        Forbidden: no claim names the person, no group has a role, the account is disabled or has another source.
    """
    name, role, users, teams = _read_claims(claims, names, roles)
    known = _existing_account(work.accounts, source, name)
    if known is None:
        made = work.accounts.create(name, role, source=source, users=users, teams=teams)
        work.audit_log.append(name, "account.made", f"account/{name}", after={"source": source, "role": role})
        return made
    if _is_unchanged(known, role, users, teams):
        return known
    work.audit_log.append(
        name,
        "account.changed",
        f"account/{name}",
        before={"role": known.role, "teams": known.teams},
        after={"role": role, "teams": teams},
    )
    return work.accounts.change(name, role=role, users=users, teams=teams)


def unchanged_account(
    accounts: AccountReader, source: AccountSource, claims: Mapping[str, Any], names: ClaimNames, roles: RoleMap
) -> Account | None:
    """The account of a person if it matches the claims; None if `log_in_identity` has to create or update it.

    Raises:
        Forbidden: as `log_in_identity`.
    """
    name, role, users, teams = _read_claims(claims, names, roles)
    known = _existing_account(accounts, source, name)
    return known if known is not None and _is_unchanged(known, role, users, teams) else None


def _read_claims(
    claims: Mapping[str, Any], names: ClaimNames, roles: RoleMap
) -> tuple[str, Role, tuple[str, ...], tuple[str, ...]]:
    """Name, role, users and teams from the claims."""
    name = claims.get(names.user)
    if not isinstance(name, str) or not name.strip():
        raise Forbidden(f"the identity provider sends no {names.user}")
    role = roles.of(claim_values(claims.get(names.groups)))
    if role is None:
        raise Forbidden(f"{name[:80]} is in no group that may log in (FAULTLINE_ROLES)")
    return name, role, (name,), claim_values(claims.get(names.teams)) if names.teams else ()


def _existing_account(accounts: AccountReader, source: AccountSource, name: str) -> Account | None:
    try:
        known = accounts.named(name)
    except NotFound:
        return None
    if known.name != name:  # a name that is changed when it is cleaned must not match another account
        return None
    if known.disabled_at is not None:
        raise Forbidden(f"the account {name[:80]} is disabled")
    if known.source != source:
        raise Forbidden(f"{name[:80]} is a {known.source} account")
    return known


def _is_unchanged(known: Account, role: Role, users: tuple[str, ...], teams: tuple[str, ...]) -> bool:
    return (known.role, known.users, known.teams) == (role, users, tuple(sorted(teams)))


def claim_values(value: Any) -> tuple[str, ...]:
    """The values of a claim: a list, or one text separated by commas or spaces."""
    if isinstance(value, str):
        return tuple(part for part in value.replace(",", " ").split() if part)
    if isinstance(value, Sequence):
        return tuple(str(part) for part in value)
    return ()
