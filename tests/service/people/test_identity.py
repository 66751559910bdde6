"""Externally authenticated accounts: created at the first login, updated at the next."""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from service.db.session import Store
from service.errors import Forbidden, InvalidInput
from service.people.identity import ClaimNames, claim_values, log_in_identity
from service.people.repository.accounts import AccountSource
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


@pytest.mark.parametrize("name", ["orion/ana", "/ana", "hook-orion", "this machine", "policy"])
@pytest.mark.parametrize("source", ["oidc", "proxy"])
def test_no_name_gives_the_jobs_or_the_records_of_another(world: World, source: AccountSource, name: str) -> None:
    """The user of the account `orion/ana` would be ana on the cluster orion."""
    with world.store.unit_of_work() as work:
        work.tokens.create("hook-orion", ["hook"], clusters=["orion"])
    with pytest.raises(Forbidden), world.store.unit_of_work() as work:
        log_in_identity(work, source, {"preferred_username": name} | PERSON, NAMES, ROLES)


@pytest.mark.parametrize("name", [" ana", "ana ", "ana  b", "ana\u00a0", "a\nb", "ana\u200b", "\u202eana", "a" * 201])
def test_a_name_that_looks_like_another_makes_no_account(world: World, name: str) -> None:
    with pytest.raises(InvalidInput), world.store.unit_of_work() as work:
        log_in_identity(work, "oidc", {"preferred_username": name} | PERSON, NAMES, ROLES)


def test_list_claims_have_several_formats() -> None:
    assert claim_values("a, b c", ",") == claim_values(["a", "b c"]) == ("a", "b c")  # of a proxy's header
    assert claim_values("a,b c") == ("a,b c",)
    assert claim_values(None) == claim_values(7) == ()


def test_the_first_requests_of_a_new_person_at_the_same_time_make_one_account(open_store: Callable[[], Store]) -> None:
    first, second = open_store(), open_store()
    claims = {"preferred_username": "ana", "groups": ["sre"]}
    found: list[object] = []

    def log_in() -> None:
        try:
            with second.unit_of_work() as work:
                found.append(log_in_identity(work, "proxy", claims, ClaimNames(), ROLES))
        except Exception as error:  # noqa: BLE001 -- of the thread, for the test
            found.append(error)

    thread = Thread(target=log_in)
    with first.unit_of_work() as work:
        made = log_in_identity(work, "proxy", claims, ClaimNames(), ROLES)
        thread.start()
        time.sleep(0.3)  # the other one waits for this transaction
    thread.join(60)
    assert found == [made]
