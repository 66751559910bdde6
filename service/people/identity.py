"""Externally authenticated people: an account is created or updated from the claims at each login."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.db.session import UnitOfWork
from service.errors import Conflict, Forbidden, NotFound
from service.people.repository.accounts import Account, AccountReader, AccountSource, Role
from service.people.roles import RoleMap

# Whom the records name for what no person does.
_NOT_PEOPLE = frozenset({"policy", "this machine"})
_SUBJECT = 255  # characters of `sub` (OpenID Connect Core 1.0, section 2)


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
        Forbidden: no claim names the person, or with a slash, no group has a role, the account is disabled or has
            another source, or the name of a new one is that of an API token or of the service itself.
        Conflict: the name is taken.
        InvalidInput: the name of a new account is too long, or has spaces around it or characters that nobody sees.
    """
    name, role, users, teams = _read_claims(source, claims, names, roles)
    identity = _identity(source, claims)
    known = _existing_account(work.accounts, source, name, identity)
    if known is None:
        if name in _NOT_PEOPLE or work.tokens.has(name):  # else what the person does looks like what a program does
            raise Forbidden(f"{name[:80]} is the name of a program here, not of a person")
        try:
            made = work.accounts.create(name, role, source=source, users=users, teams=teams, identity=identity)
        except Conflict:  # made by another request of the same person since the look
            known = _existing_account(work.accounts, source, name, identity)
            if known is None:
                raise
        else:
            work.audit_log.append(name, "account.made", f"account/{name}", after={"source": source, "role": role})
            return made
    if _is_unchanged(known, role, users, teams, identity):
        return known
    work.audit_log.append(
        name,
        "account.changed",
        f"account/{name}",
        before={"role": known.role, "teams": known.teams},
        after={"role": role, "teams": teams},
    )
    bound = {} if identity is None else {"issuer": identity[0], "external_id": identity[1]}
    return work.accounts.change(name, role=role, users=users, teams=teams, **bound)


def unchanged_account(
    accounts: AccountReader, source: AccountSource, claims: Mapping[str, Any], names: ClaimNames, roles: RoleMap
) -> Account | None:
    """The account of a person if it matches the claims; None if `log_in_identity` has to create or update it.

    Raises:
        Forbidden: as `log_in_identity`.
    """
    name, role, users, teams = _read_claims(source, claims, names, roles)
    identity = _identity(source, claims)
    known = _existing_account(accounts, source, name, identity)
    return known if known is not None and _is_unchanged(known, role, users, teams, identity) else None


def _identity(source: AccountSource, claims: Mapping[str, Any]) -> tuple[str, str] | None:
    """The issuer and the subject of a person of an identity provider, which never change and are never reused.

    Raises:
        Forbidden: the claims lack one of them.
    """
    if source != "oidc":
        return None
    issuer, subject = claims.get("iss"), claims.get("sub")
    if not isinstance(issuer, str) or not isinstance(subject, str) or not issuer or not 1 <= len(subject) <= _SUBJECT:
        raise Forbidden("the identity provider sends no sub")
    return issuer, subject


def _read_claims(
    source: AccountSource, claims: Mapping[str, Any], names: ClaimNames, roles: RoleMap
) -> tuple[str, Role, tuple[str, ...], tuple[str, ...]]:
    """Name, role, users and teams from the claims."""
    name = claims.get(names.user)
    if not isinstance(name, str) or not name.strip():
        raise Forbidden(f"the identity provider sends no {names.user}")
    if "/" in name:  # as the user of a job, "cluster/user" is the user of that cluster: another person's jobs
        raise Forbidden(f"{name[:80]}: a name with a slash can't log in (FAULTLINE_USER_CLAIM)")
    separator = "," if source == "proxy" else None
    role = roles.of(claim_values(claims.get(names.groups), separator))
    if role is None:
        raise Forbidden(f"{name[:80]} is in no group that may log in (FAULTLINE_ROLES)")
    return name, role, (name,), claim_values(claims.get(names.teams), separator) if names.teams else ()


def _existing_account(
    accounts: AccountReader, source: AccountSource, name: str, identity: tuple[str, str] | None
) -> Account | None:
    same = None if identity is None else accounts.of_identity(*identity)
    if same is not None and same.name != name:
        raise Forbidden(f"this person has the account {same.name[:80]}: an administrator has to change the name")
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
    # An account of an earlier release has no identity; the first login with its name binds it.
    if identity is not None and known.identity not in {None, identity}:
        raise Forbidden(f"the account {name[:80]} belongs to another person of the identity provider")
    return known


def _is_unchanged(
    known: Account, role: Role, users: tuple[str, ...], teams: tuple[str, ...], identity: tuple[str, str] | None
) -> bool:
    stored = (known.role, known.users, known.teams, known.identity)
    return stored == (role, users, tuple(sorted(teams)), identity)


def claim_values(value: Any, separator: str | None = None) -> tuple[str, ...]:
    """The values of a claim: a list, or one text.

    A text is split only at the separator of a proxy's header: the group "not admin" must not become the group "admin".
    """
    if isinstance(value, str):
        parts = value.split(separator) if separator is not None else [value]
        return tuple(part.strip() for part in parts if part.strip())
    if isinstance(value, Sequence):
        return tuple(str(part) for part in value)
    return ()
