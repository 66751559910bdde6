"""Live updates: nobody holds all of them, and they end with the rights of who receives them."""

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPResponse
from pathlib import Path
from typing import cast

import pytest
from sse_starlette.sse import AppStatus

from service.db.session import UnitOfWork
from service.people.repository.accounts import Account
from service.web.auth import identify
from service.web.limits.caller_limits import ConcurrencyLimit
from service.web.pages import live
from service.web.sessions import COOKIE, LIFETIME
from tests.service.web.live import serving
from tests.service.web.world import World, event, lines, make_world

PATHS = ("/live", "/failures/1/live")
MOST, OF_ONE = 5, 3
LONG_S = 30.0


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = make_world(tmp_path, host="0.0.0.0", live_updates=ConcurrencyLimit("live updates", MOST, OF_ONE))
    with made.client(made.token("ingest")) as client:
        assert client.post("/api/v1/events", content=lines(event("1"))).json()["accepted"] == 1
    yield made
    made.store.close()


def listen(address: str, token: str) -> HTTPResponse:
    asked = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    return cast("HTTPResponse", urllib.request.urlopen(asked, timeout=120))


def refusal(address: str, token: str) -> tuple[int, bool]:
    """The status of a refused request, and whether it says when to try again."""
    with pytest.raises(urllib.error.HTTPError) as refused, listen(address, token):
        pass
    with refused.value as error:
        return error.code, error.headers["Retry-After"] is not None


@pytest.mark.enable_socket
def test_one_caller_cannot_keep_others_from_receiving_updates(world: World) -> None:
    one, other = world.token("read", name="one"), world.token("read", name="other")
    with serving(world.app) as site, ExitStack() as held:
        for number in range(OF_ONE):
            held.enter_context(listen(f"{site}{PATHS[number % 2]}", one))
        for path in PATHS:
            assert refusal(f"{site}{path}", one) == (429, True)
        for number in range(MOST - OF_ONE):
            held.enter_context(listen(f"{site}{PATHS[number % 2]}", other))
        assert refusal(f"{site}{PATHS[0]}", other) == (429, True)


def test_updates_that_ended_or_never_began_do_not_count(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_DURATION_S", 0.0)
    with world.client(world.token("read")) as client:
        for _ in range(MOST + 1):
            assert [client.get(path).status_code for path in PATHS] == [200, 200]
            assert client.head(PATHS[0]).status_code == 200
            assert client.get("/live?since=never").status_code == 422
            assert client.get("/failures/99/live").status_code == 404


@pytest.mark.parametrize("path", PATHS)
def test_updates_end_with_the_right_to_receive_them(world: World, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """They went on for up to a quarter of an hour after a token was revoked."""
    monkeypatch.setattr(live, "INTERVAL_S", 0.0)
    monkeypatch.setattr(live, "RECHECK_S", 0.0)
    monkeypatch.setattr(live, "MAX_DURATION_S", LONG_S)
    token = world.token("read", name="leaves")
    with world.client(token) as client:

        def revoked(*given: object) -> object:
            with world.store.unit_of_work() as work:
                work.tokens.revoke("leaves")
            monkeypatch.setattr(live, "identify", identify)
            return identify(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(live, "identify", revoked)
        began = time.monotonic()
        assert client.get(path).status_code == 200
        assert time.monotonic() - began < LONG_S
        assert client.get(path).status_code in {303, 401}


ENDS: dict[str, Callable[[UnitOfWork, Account], object]] = {
    "log-out": lambda work, account: work.sessions.end_all(account.id),
    "disabled account": lambda work, account: work.accounts.disable(account.name),
    "another role": lambda work, account: work.accounts.change(account.name, role="owner"),
    "fewer teams": lambda work, account: work.accounts.change(account.name, teams=["speech"]),
}


@pytest.mark.parametrize("kind", ENDS)
def test_updates_end_with_the_session_the_account_and_its_role(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(live, "INTERVAL_S", 0.0)
    monkeypatch.setattr(live, "RECHECK_S", 0.0)
    monkeypatch.setattr(live, "MAX_DURATION_S", LONG_S)
    with world.store.unit_of_work() as work:
        role = "owner" if kind == "fewer teams" else "viewer"
        account = work.accounts.create("ana", role, password="x", teams=["vision", "speech"])
        session = work.sessions.log_in(account_id=account.id, lasts=LIFETIME)

    def ended(*given: object) -> object:
        with world.store.unit_of_work() as work:
            ENDS[kind](work, account)
        monkeypatch.setattr(live, "identify", identify)
        return identify(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(live, "identify", ended)
    with world.client() as client:
        client.cookies.set(COOKIE, session)
        began = time.monotonic()
        assert client.get(PATHS[1]).status_code == 200
        assert time.monotonic() - began < LONG_S


@pytest.mark.enable_socket
def test_updates_end_with_the_server_and_without_an_error(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each open page was an error in the log at every restart, among which others go unnoticed."""
    with ExitStack() as held, serving(world.app) as site:
        pages = [held.enter_context(listen(f"{site}{path}", world.token("read", name=path))) for path in PATHS]
        monkeypatch.setattr(AppStatus, "should_exit", True)  # as SIGTERM does
        for page in pages:
            page.read()  # to a regular end: an IncompleteRead otherwise
    assert [one.message for one in caplog.records if one.levelname == "ERROR"] == []
