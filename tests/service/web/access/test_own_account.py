"""People change their own passwords, and see and end their sessions; administrators end those of others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from fastapi.testclient import TestClient

from service.people.login_methods import LoginMethods
from service.web.sessions import IDLE
from tests.service.web.access.test_auth import form_token
from tests.service.web.access.test_auth import log_in as log_in_by_token
from tests.service.web.access.test_people import PROXY
from tests.service.web.access.test_security_events import audited, counted
from tests.service.web.world import HERE, World, make_world

OLD, NEW = "five random words 81 tulip", "seven other words 25 daisy"
HASHED = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(OLD)  # quick to verify
API = "/api/v1/account"
FROM_HERE = {"Origin": HERE}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = make_world(tmp_path, host="0.0.0.0")
    with made.store.unit_of_work() as work:
        for name, role in (("ana", "viewer"), ("bo", "owner"), ("root", "admin")):
            work.accounts.create(name, role, password=HASHED, users=("bo",) if role == "owner" else ())
    yield made
    made.store.close()


def browser(
    world: World, name: str, address: str = "192.0.2.1", agent: str = "Firefox/150", code: str = OLD
) -> TestClient:
    made = TestClient(
        world.app, base_url=HERE, client=(address, 5), follow_redirects=False, headers={"User-Agent": agent}
    )
    assert enter(made, name, code) == 303
    return made


def enter(client: TestClient, name: str, password: str) -> int:
    form = {"name": name, "password": password, "form_token": form_token(client)}
    return client.post("/login", data=form).status_code


def items(client: TestClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"{API}/sessions").json()["items"]
    return found


def change(client: TestClient, current: str, new: str) -> tuple[int, Any]:
    body = {"current_password": current, "new_password": new}
    answer = client.post(f"{API}:change-password", json=body, headers=FROM_HERE)
    return answer.status_code, answer.json()


def test_a_new_password_needs_the_present_one_and_ends_the_other_sessions(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    here, elsewhere, other = browser(world, "ana"), browser(world, "ana"), browser(world, "bo")
    status, problem = change(here, "not the password at all", NEW)
    assert (status, problem["errors"][0]["field"]) == (422, "current_password")
    assert change(here, OLD, NEW) == (200, {"sessions_ended": 1})
    answers = [client.get("/account").status_code for client in (here, elsewhere, other)]
    assert answers == [200, 303, 200]
    with world.client() as again:
        assert [enter(again, "ana", OLD), enter(again, "ana", NEW)] == [401, 303]
    assert audited(world, "password.changed") == [("ana", "account/ana")]
    assert counted(world, "password.changed") == 1
    assert OLD not in caplog.text
    assert NEW not in caplog.text


@pytest.mark.parametrize(
    ("new", "expected"), [("short", "12 to 200 characters"), ("password1234", "harder to guess"), (OLD, "differs")]
)
def test_an_unfit_new_password_changes_nothing(world: World, new: str, expected: str) -> None:
    here, elsewhere = browser(world, "ana"), browser(world, "ana")
    status, problem = change(here, OLD, new)
    assert (status, problem["errors"][0]["field"]) == (422, "new_password")
    assert expected in problem["detail"]
    assert elsewhere.get("/account").status_code == 200


def test_no_answer_repeats_a_password_or_token_that_is_too_long(world: World) -> None:
    ana, long = browser(world, "ana"), "tulip-" * 300
    for body in ({"current_password": long, "new_password": NEW}, {"current_password": OLD, "new_pasword": "tulip-"}):
        answer = ana.post(f"{API}:change-password", json=body, headers=FROM_HERE)
        assert (answer.status_code, "tulip-" in answer.text) == (422, False)
    form = {"form_token": form_token(ana), "current_password": OLD, "new_password": long, "repeated": long}
    page = ana.post("/account/password", data=form)
    assert (page.status_code, "tulip-" in page.text) == (422, False)
    stranger = TestClient(world.app, base_url=HERE, follow_redirects=False)
    for fields in ({"name": "ana", "password": long}, {"token": long}, {"name": "ana", "code": long}):
        page = stranger.post("/login", data={"form_token": form_token(stranger), **fields})
        assert (page.status_code, "tulip-" in page.text) == (422, False)


def test_guesses_of_the_present_password_are_limited_as_logins_are(world: World) -> None:
    here = browser(world, "ana")
    answers = [change(here, f"guess number {number}", NEW)[0] for number in range(10)]
    assert answers == [422] * 10
    last = here.post(f"{API}:change-password", json={"current_password": OLD, "new_password": NEW}, headers=FROM_HERE)
    assert last.status_code == 429
    assert int(last.headers["Retry-After"]) >= 60


def test_the_page_changes_the_password_and_says_what_is_wrong(world: World) -> None:
    here = browser(world, "bo")
    form = {"current_password": OLD, "new_password": NEW, "form_token": form_token(here, "/account")}
    wrong = here.post("/account/password", data=form | {"repeated": "something else"})
    assert wrong.status_code == 422
    assert "new password again: expected the same text as the new password" in wrong.text
    wrong = here.post("/account/password", data=form | {"repeated": NEW, "current_password": "not it"})
    assert "current password: expected the current password of this account" in wrong.text
    assert "not it" not in wrong.text
    done = here.post("/account/password", data=form | {"repeated": NEW})
    assert (done.status_code, done.headers["location"]) == (303, "/account?notice=password_changed")
    assert "Password changed." in here.get(done.headers["location"]).text


def test_a_password_that_looks_like_a_secret_reaches_the_check_unchanged(world: World) -> None:
    secret = "ghp_" + "k3Jf9Qw2Lx8Vn5Tz1Rb7Hc4Ym6Sd0Pg2Wa9X"  # a format that is redacted in every other body
    here = browser(world, "ana")
    assert change(here, OLD, secret)[0] == 200
    form = {"current_password": secret, "new_password": NEW, "repeated": NEW}
    assert here.post("/account/password", data=form | {"form_token": form_token(here, "/account")}).status_code == 303


def test_a_person_sees_own_sessions_with_time_address_and_browser(world: World) -> None:
    browser(world, "bo", "203.0.113.9")
    browser(world, "ana", "198.51.100.7", "curl/8 <b>x</b> token=ghp_k3Jf9Qw2Lx8Vn5Tz1Rb7Hc4Ym6Sd0Pg2Wa9X")
    here = browser(world, "ana", "192.0.2.1")
    found = {one["address"]: one for one in items(here)}
    assert set(found) == {"198.51.100.7", "192.0.2.1"}
    assert found["192.0.2.1"]["current"] is True
    assert found["198.51.100.7"]["current"] is False
    assert found["192.0.2.1"]["agent"] == "Firefox/150"
    assert "ghp_k3" not in found["198.51.100.7"]["agent"]
    assert found["192.0.2.1"]["created_at"] == "2026-11-20T12:00:00Z"
    page = here.get("/account").text
    assert "this session" in page
    assert "198.51.100.7" in page
    assert "203.0.113.9" not in page
    assert "<b>x</b>" not in page


def test_a_person_ends_one_or_all_other_own_sessions_only(world: World) -> None:
    here, second, third, other = (browser(world, name) for name in ("ana", "ana", "ana", "bo"))
    [of_bo] = items(other)
    assert here.delete(f"{API}/sessions/{of_bo['id']}", headers=FROM_HERE).status_code == 404
    of_second = next(one["id"] for one in items(second) if one["current"])
    assert here.delete(f"{API}/sessions/{of_second}", headers=FROM_HERE).status_code == 204
    assert [client.get("/account").status_code for client in (here, second, third, other)] == [200, 303, 200, 200]
    form = {"form_token": form_token(here, "/account")}
    assert here.post("/account/sessions/end", data=form).status_code == 303
    assert [client.get("/account").status_code for client in (here, third, other)] == [200, 303, 200]
    assert here.post(f"{API}/sessions:end-others", headers=FROM_HERE).json() == {"sessions_ended": 0}
    assert audited(world, "session.ended") == [("ana", "account/ana")]


def test_a_session_that_has_ended_is_not_listed(world: World) -> None:
    browser(world, "ana")
    world.clock.sleep(IDLE.total_seconds() + 1)
    assert [one["current"] for one in items(browser(world, "ana"))] == [True]


def test_only_an_administrator_ends_the_sessions_of_a_person(world: World) -> None:
    ana, other, root = browser(world, "ana", "198.51.100.7"), browser(world, "bo"), browser(world, "root")
    path = "/api/v1/accounts/bo/sessions"
    assert [client.post(f"{path}:end", headers=FROM_HERE).status_code for client in (ana, other)] == [403, 403]
    assert [one["address"] for one in root.get("/api/v1/accounts/ana/sessions").json()["items"]] == ["198.51.100.7"]
    assert root.post(f"{path}:end", headers=FROM_HERE).json() == {"sessions_ended": 1}
    assert root.post("/api/v1/accounts/nobody/sessions:end", headers=FROM_HERE).status_code == 404
    form = {"form_token": form_token(root, "/settings"), "name": "ana"}
    assert root.post("/settings/accounts/end-sessions", data=form).status_code == 303
    assert [client.get("/account").status_code for client in (ana, other, root)] == [303, 303, 200]
    assert sorted(audited(world, "sessions.ended")) == [("root", "account/ana"), ("root", "account/bo")]


def test_tokens_have_neither_password_nor_sessions(world: World) -> None:
    with world.client(world.token("read", name="probe")) as client:
        assert client.get(f"{API}/sessions").status_code == 409
        assert change(client, OLD, NEW)[0] == 409
    with world.client() as client:
        assert log_in_by_token(client, world.token("read", name="ana")) == 303  # the name of an account
        assert "logged in with the API token" in client.get("/account").text
        assert client.get(f"{API}/sessions").status_code == 409


def test_the_password_of_an_outside_account_is_not_changed_here(tmp_path: Path) -> None:
    world = make_world(tmp_path, host="0.0.0.0", people=PROXY)
    proxied = {"X-User": "ana", "X-Groups": "sre", "X-Faultline-Proxy-Secret": "between us", **FROM_HERE}
    with world.client() as client:
        page = client.get("/account", headers=proxied)
        assert page.status_code == 200
        assert "change it where you log in" in page.text
        body = {"current_password": OLD, "new_password": NEW}
        assert client.post(f"{API}:change-password", json=body, headers=proxied).status_code == 409
    world.store.close()


def test_a_server_without_a_login_has_no_account(tmp_path: Path) -> None:
    world = make_world(tmp_path, people=LoginMethods())
    with world.client() as client:
        assert "there is no account" in client.get("/account").text
    world.store.close()
