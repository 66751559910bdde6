from datetime import timedelta

import pytest

from service.db.session import Store
from service.errors import Conflict, InvalidInput, NotFound
from service.web.sessions import IDLE
from tests.service.databases import engine_of
from tests.service.frozen_clock import FrozenClock


def test_a_token_is_found_by_its_secret_until_it_is_revoked(store: Store, clock: FrozenClock) -> None:
    with store.unit_of_work() as work:
        assert not work.tokens.any()
        token, secret = work.tokens.create("ci", ["read", "ingest"])
    assert token.scopes == {"read", "ingest"}
    with store.reading() as reading:
        assert reading.tokens.any()
        assert reading.tokens.find(secret) == token
        for other in ("", secret[:-1], secret + "x", "\ud800", "\0"):
            assert reading.tokens.find(other) is None
    clock.sleep(5)
    with store.unit_of_work() as work:
        work.tokens.used(token)
        clock.sleep(5)
        work.tokens.revoke("ci")
        assert work.tokens.find(secret) is None
        assert not work.tokens.any()
        [listed] = work.tokens.list()
        with pytest.raises(NotFound):
            work.tokens.revoke("ci")
    assert listed.revoked_at == clock.at
    assert listed.last_used_at is not None
    assert (clock.at - listed.last_used_at).total_seconds() == 5


def test_the_secret_itself_is_not_stored(store: Store) -> None:
    with store.unit_of_work() as work:
        _, secret = work.tokens.create("ci", ["admin"])
    with engine_of(store).connect() as connection:
        for row in connection.exec_driver_sql("SELECT * FROM tokens"):
            assert secret not in " ".join(map(str, row))


def test_a_name_can_be_reused_after_revocation(store: Store) -> None:
    with store.unit_of_work() as work:
        work.tokens.create("ci", ["read"])
        with pytest.raises(Conflict, match="ci"):
            work.tokens.create("ci", ["read"])
        work.tokens.revoke("ci")
        work.tokens.create("ci", ["read"])
        assert len(work.tokens.list()) == 2


@pytest.mark.parametrize(
    ("name", "scopes", "field"),
    [
        ("", ["read"], "name"),
        (" ", ["read"], "name"),
        ("n" * 201, ["read"], "name"),
        ("a\0b", ["read"], "name"),
        ("a", [], "scopes"),
        ("a", ["read", "root"], "scopes"),
    ],
)
def test_a_bad_token_is_refused_by_field(store: Store, name: str, scopes: list[str], field: str) -> None:
    with store.unit_of_work() as work, pytest.raises(InvalidInput) as caught:
        work.tokens.create(name, scopes)
    assert caught.value.errors[0].field == field


def test_many_sessions_of_one_owner_end_no_others(store: Store) -> None:
    with store.unit_of_work() as work:
        ana, bob = (work.accounts.create(name, "viewer", password="x") for name in ("ana", "bob"))
        of_bob = work.sessions.log_in(account_id=bob.id, lasts=timedelta(hours=1))
        of_ana = [work.sessions.log_in(account_id=ana.id, lasts=timedelta(hours=1)) for _ in range(150)]
    with store.reading() as reading:
        assert reading.sessions.owner(of_bob, idle=IDLE) is not None
        assert sum(reading.sessions.owner(one, idle=IDLE) is not None for one in of_ana) == 100
