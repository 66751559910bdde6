"""Externally authenticated accounts: created at the first login, updated at the next."""

from pathlib import Path

import pytest

from service.errors import Forbidden
from service.people.identity import ClaimNames, claim_values, log_in_identity
from service.people.roles import parse_roles
from tests.service.web.world import World, make_world

ROLES = parse_roles(["sre=operator", "*=owner"])
NAMES = ClaimNames(teams="team")
PERSON = {"iss": "https://login.example", "sub": "1"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def test_an_account_is_created_and_later_updated_from_the_claims(world: World) -> None:
    for claims, role in (
        ({"preferred_username": "ana"}, "owner"),
        ({"preferred_username": "ana", "groups": ["sre"]}, "operator"),
    ):
        with world.store.unit_of_work() as work:
            assert log_in_identity(work, "oidc", claims | PERSON, NAMES, ROLES).role == role
    with world.store.reading() as reading:
        assert [entry.what for entry in reading.audit_log.page(limit=9).items] == ["account.changed", "account.made"]


def test_people_without_access_are_refused(world: World) -> None:
    nobody = parse_roles(["sre=operator"])
    with world.store.unit_of_work() as work:
        work.accounts.create("local", "admin", password="x")
        work.accounts.create("gone", "owner", source="oidc", users=("gone",))
        work.accounts.disable("gone")
    for claims, roles in (
        ({}, ROLES),
        ({"preferred_username": 7}, ROLES),
        ({"preferred_username": "ana", "groups": "ml"}, nobody),
        ({"preferred_username": "local"}, ROLES),
        ({"preferred_username": "gone"}, ROLES),
    ):
        with pytest.raises(Forbidden), world.store.unit_of_work() as work:
            log_in_identity(work, "oidc", claims | PERSON, NAMES, roles)


def test_list_claims_have_several_formats() -> None:
    assert claim_values("a, b c", ",") == claim_values(["a", "b c"]) == ("a", "b c")  # of a proxy's header
    assert claim_values("a,b c") == ("a,b c",)
    assert claim_values(None) == claim_values(7) == ()
