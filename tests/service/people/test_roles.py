from datetime import UTC, datetime

import pytest

from service.errors import ConfigurationError
from service.failures.records import Visibility
from service.people.repository.accounts import Account, Role
from service.people.roles import parse_roles, scopes_of, visible_to


def account(role: Role, users: tuple[str, ...] = (), teams: tuple[str, ...] = ()) -> Account:
    return Account(1, "ana", "local", role, users, teams, datetime(2026, 11, 20, tzinfo=UTC))


def test_an_owner_sees_their_own_on_the_named_cluster_only() -> None:
    owner = account("owner", ("ana", "orion/a.b"))
    assert scopes_of(owner) == {"own"}
    assert visible_to(owner) == Visibility(((None, "ana"), ("orion", "a.b")), ())


def test_a_team_limits_viewers_and_operators_but_not_admins() -> None:
    assert "read" not in scopes_of(account("viewer", teams=("vision",)))
    assert visible_to(account("operator", teams=("vision",))) == Visibility((), ("vision",))
    assert visible_to(account("admin", teams=("vision",))) is None
    assert visible_to(account("viewer")) is None
    assert "read" in scopes_of(account("viewer"))


def test_the_strongest_group_role_counts_and_without_one_access_is_refused() -> None:
    roles = parse_roles(["sre=operator", "ml=viewer", "root=admin"])
    assert roles.of(["ml", "sre"]) == "operator"
    assert roles.of(["x"]) is None
    assert parse_roles(["*=owner"]).of([]) == "owner"


@pytest.mark.parametrize("pair", ["sre", "=admin", "sre=boss", ""])
def test_an_invalid_pair_is_reported(pair: str) -> None:
    with pytest.raises(ConfigurationError, match="FAULTLINE_ROLES"):
        parse_roles([pair])
