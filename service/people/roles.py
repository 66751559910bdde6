"""The scopes and the visibility of each role."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from service.errors import ConfigurationError
from service.failures.records import Visibility
from service.people.repository.accounts import Account, Role

# The scopes of API tokens, and "own": access to the failures of one's own jobs.
SCOPES: Mapping[Role, frozenset[str]] = {
    "owner": frozenset({"own"}),
    "viewer": frozenset({"own", "read"}),
    "operator": frozenset({"own", "read", "act"}),
    "admin": frozenset({"own", "read", "act", "ingest", "admin"}),
}
ANYBODY = "*"


def scopes_of(account: Account) -> frozenset[str]:
    """The scopes of an account; one that is limited to some teams has no access to unfiltered data."""
    granted = SCOPES[account.role]
    return granted - {"read"} if account.teams and account.role in {"viewer", "operator"} else granted


def visible_to(account: Account) -> Visibility | None:
    """The failures that an account sees; None: all."""
    if account.role == "owner":
        return Visibility(job_users(account), account.teams)
    if account.teams and account.role != "admin":
        return Visibility((), account.teams)
    return None


def sees(visible: Visibility | None, cluster: str, user: str | None, team: str | None) -> bool:
    """Whether a job of this cluster, user and team is visible."""
    if visible is None:
        return True
    if visible.clusters is not None:
        if cluster not in visible.clusters:
            return False
        if not visible.users and not visible.teams:
            return True
    return (team is not None and team in visible.teams) or any(
        user == name and where in (None, cluster) for where, name in visible.users
    )


def job_users(account: Account) -> tuple[tuple[str | None, str], ...]:
    """The names under which the person's jobs run, each with its cluster; None: on any cluster."""
    return tuple(_user(name) for name in account.users)


def _user(name: str) -> tuple[str | None, str]:
    cluster, slash, user = name.rpartition("/")
    return (cluster if slash else None, user)


@dataclass(frozen=True, slots=True)
class RoleMap:
    """Which group of an identity provider has which role; the strongest of a person's groups counts."""

    roles: Mapping[str, Role]

    def of(self, groups: Sequence[str]) -> Role | None:
        """The role of a person in these groups; None: may not log in."""
        found = {self.roles[group] for group in (*groups, ANYBODY) if group in self.roles}
        return next((role for role in ("admin", "operator", "viewer", "owner") if role in found), None)


def parse_roles(pairs: Sequence[str]) -> RoleMap:
    """A map from `group=role` pairs; `*` stands for everybody who can log in.

    Raises:
        ConfigurationError: an invalid pair, or an unknown role.
    """
    known: Mapping[str, Role] = {role: role for role in get_args(Role)}
    found: dict[str, Role] = {}
    for pair in pairs:
        group, _, role = pair.rpartition("=")
        if not group or role not in known:
            raise ConfigurationError(f"FAULTLINE_ROLES: expected group=role with a role of {', '.join(known)}: {pair}")
        if found.get(group, role) != role:
            raise ConfigurationError(f"FAULTLINE_ROLES: {group} has two roles, expected one")
        found[group] = known[role]
    return RoleMap(found)
