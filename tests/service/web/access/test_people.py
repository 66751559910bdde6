"""LoginMethods log in by password or proxy, see what is theirs, and are let in nowhere else."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from service.errors import Unavailable
from service.failures.records import FailureDetail
from service.people import passwords
from service.people.identity import ClaimNames
from service.people.login_limits import LoginAttempts
from service.people.login_methods import LoginMethods, Proxy
from service.people.roles import parse_roles
from service.web.auth import PROXY_SECRET
from tests.service.web.access.test_auth import form_token
from tests.service.web.world import World, event, lines, make_world

PASSWORD = "correct horse battery"
PROXY = LoginMethods(
    parse_roles(["sre=operator", "*=owner"]), ClaimNames(), None, Proxy("between us", ClaimNames("X-User", "X-Groups"))
)


def person(world: World, name: str, role: str, **changes: object) -> None:
    with world.store.unit_of_work() as work:
        work.accounts.create(name, role, password=passwords.hash_password(PASSWORD), **changes)  # type: ignore[arg-type]


def log_in(client: TestClient, name: str, password: str = PASSWORD) -> int:
    form = {"name": name, "password": password, "form_token": form_token(client)}
    return client.post("/login", data=form).status_code


@pytest.fixture
def busy(guarded: World) -> World:
    body = lines(event("1"), event("2", user="bob", team="speech"), event("3", user="bob", cluster="lyra"))
    with guarded.client(guarded.token("ingest", name="sender")) as client:
        assert client.post("/api/v1/events", content=body).json()["accepted"] == 3
    return guarded


def seen(client: TestClient) -> set[str]:
    items = client.get("/api/v1/failures").json()["items"]
    return {f"{one['cluster']}/{one['job_id']}" for one in items}


def test_an_owner_sees_their_own_failures_and_nothing_else(busy: World) -> None:
    person(busy, "bob", "owner", users=("orion/bob",))
    with busy.client() as client:
        assert log_in(client, "bob") == 303
        assert seen(client) == {"orion/2"}
        everything = {one.row.job_id: one.row.id for one in details(busy)}
        assert client.get(f"/failures/{everything['2']}").status_code == 200
        assert client.get(f"/failures/{everything['1']}").status_code == 404
        assert client.get(f"/api/v1/failures/{everything['3']}").status_code == 404
        assert client.get("/api/v1/jobs/orion/1").status_code == 404
        assert client.get("/api/v1/stats").status_code == 403
        assert client.get("/dead-letters").status_code == 403
        assert client.get("/").headers["location"] == "/failures"


def test_an_owner_is_offered_only_pages_that_open(busy: World) -> None:
    person(busy, "bob", "owner", users=("orion/bob",))
    with busy.client() as client:
        assert log_in(client, "bob") == 303
        page = client.get("/failures").text
        assert "<h1>My failures</h1>" in page
        menu = page.partition('<nav id="menu"')[2].partition("</nav>")[0]
        offered = set(re.findall(r'href="([^"]+)"', menu))
        assert offered == {"/", "/failures", "/account"}
        refused = client.get("/automation")
        assert refused.status_code == 403
        assert "Your account sees the failures of its own jobs or teams only" in refused.text
        assert '<a href="/failures">My failures</a>' in refused.text
        assert '<nav id="menu"' in refused.text, "with the navigation, not a dead end"
        answer = client.post("/api/v1/automation:stop", headers={"Origin": "http://127.0.0.1:8080"})
        assert answer.json()["detail"] == "your role does not include the scope act"


def test_the_settings_say_first_who_has_access_and_to_what(busy: World) -> None:
    person(busy, "bob", "owner", users=("orion/bob",), teams=("vision",))
    person(busy, "root", "admin")
    with busy.client() as client:
        assert log_in(client, "root") == 303
        page = client.get("/settings").text
    assert "<td>owner</td><td>orion/bob, vision</td>" in page
    assert "<td>admin</td><td>all</td>" in page
    assert page.index("<h2>Accounts</h2>") < page.index("<h2>Settings of this process</h2>")
    assert "that are not set</summary>" in page


def details(world: World) -> list[FailureDetail]:
    with world.store.reading() as reading:
        return [reading.failures.get(number) for number in (1, 2, 3)]


def test_a_team_narrows_what_an_operator_sees(busy: World) -> None:
    person(busy, "eve", "operator", teams=("speech",))
    with busy.client() as client:
        assert log_in(client, "eve") == 303
        assert seen(client) == {"orion/2"}


def test_a_disabled_account_is_out_at_once(busy: World) -> None:
    person(busy, "ana", "viewer")
    with busy.client() as client:
        assert log_in(client, "ana") == 303
        assert client.get("/api/v1/stats").status_code == 200
        with busy.store.unit_of_work() as work:
            work.accounts.disable("ana")
        assert client.get("/api/v1/stats").status_code == 401
        assert log_in(client, "ana") == 401


def test_guessing_is_slowed_down(guarded: World) -> None:
    person(guarded, "ana", "viewer")
    with guarded.client() as client:
        codes = [log_in(client, "ana", f"wrong {number} password") for number in range(11)]
        assert set(codes[:10]) == {401}
        assert codes[10] == 429
        assert log_in(client, "ana") == 429


def test_logins_that_could_not_be_checked_do_not_count(guarded: World, monkeypatch: pytest.MonkeyPatch) -> None:
    person(guarded, "ana", "viewer")

    def busy(*_: object) -> bool:
        raise Unavailable("the database does not answer")

    with guarded.client() as client:
        with monkeypatch.context() as patched:
            patched.setattr(passwords, "verify", busy)
            assert {log_in(client, "ana") for _ in range(12)} == {503}
        assert log_in(client, "ana") == 303
        form = {"form_token": form_token(client), "new_password": "seven other words 25 daisy"}
        form |= {"current_password": PASSWORD, "repeated": form["new_password"]}
        with monkeypatch.context() as patched:
            patched.setattr(passwords, "verify", busy)
            assert {client.post("/account/password", data=form).status_code for _ in range(12)} == {503}
        assert client.post("/account/password", data=form).status_code == 303


def test_a_server_without_accounts_is_called_open(world: World) -> None:
    with world.client() as client:
        assert "has full access" in client.get("/settings").text


def test_a_server_with_accounts_and_no_token_is_not_called_open(guarded: World) -> None:
    person(guarded, "root", "admin")
    with guarded.client() as client:
        assert log_in(client, "root") == 303
        page = client.get("/settings")
        assert page.status_code == 200
        assert "has full access" not in page.text


def test_a_cookie_of_a_login_that_was_not_started_is_reported(world: World) -> None:
    with world.client() as client:
        client.cookies.set("faultline_oidc", b"5".hex())
        assert client.get("/login/oidc/callback?code=1&state=1").status_code == 422


def test_blanks_around_a_name_give_no_further_guesses(guarded: World) -> None:
    person(guarded, "ana", "viewer")
    with guarded.client() as client:
        codes = [log_in(client, " " * number + "ana", "a wrong password") for number in range(11)]
    assert codes == [401] * 10 + [429]


def test_guessing_tokens_locks_no_one_else_out(guarded: World) -> None:
    secret = guarded.token("read", name="reader")
    for number in range(10):
        attempts = LoginAttempts(guarded.store)
        one = attempts.start(f"192.0.2.{number}", "")
        assert one is not None
        attempts.finish(one, succeeded=False)
    with guarded.client() as client:
        form = {"token": secret, "form_token": form_token(client)}
        assert client.post("/login", data=form).status_code == 303


def test_a_job_id_given_again_shows_nothing_of_who_has_it_now(guarded: World) -> None:
    later = {"started_at": "2026-11-20T11:35:00Z", "ended_at": "2026-11-20T11:50:00Z"}
    again = event("1", attempt=1, user="bob", team="speech", **later)
    with guarded.client(guarded.token("ingest", name="sender")) as client:
        assert client.post("/api/v1/events", content=lines(event("1"), again)).json()["accepted"] == 2
    person(guarded, "ana", "owner", users=("ana",))
    person(guarded, "root", "admin")
    with guarded.client() as client:
        assert log_in(client, "root") == 303
        for failure, user in ((1, "ana"), (2, "bob")):  # two jobs, also for those who may see both
            assert [one["user"] for one in client.get(f"/api/v1/failures/{failure}").json()["attempts"]] == [user]
        assert log_in(client, "ana") == 303
        result = client.get("/api/v1/failures/1?logs=true")
        assert [one["user"] for one in result.json()["attempts"]] == ["ana"]
        assert "bob" not in result.text


def test_a_number_that_is_none_is_no_failure_of_ones_team(guarded: World) -> None:
    person(guarded, "eve", "operator", teams=("speech",))
    with guarded.client() as client:
        assert log_in(client, "eve") == 303
        answer = client.post("/api/v1/failures/\u00b2:hold", headers={"Origin": "http://127.0.0.1:8080"})
        assert answer.status_code == 403


def test_a_proxy_vouches_only_with_its_secret(tmp_path: Path) -> None:
    world = make_world(tmp_path, people=PROXY)
    with world.client() as client:
        named = {"X-User": "ana", "X-Groups": "sre"}
        assert client.get("/api/v1/stats", headers=named).status_code == 401
        assert client.get("/api/v1/stats", headers=named | {PROXY_SECRET: "guess"}).status_code == 401
        assert client.get("/api/v1/stats", headers=named | {PROXY_SECRET: "between us"}).status_code == 200
        owner = {"X-User": "bob", PROXY_SECRET: "between us"}
        assert client.get("/api/v1/stats", headers=owner).status_code == 403
        assert client.get("/api/v1/failures", headers=owner).status_code == 200
        with world.store.unit_of_work() as work:  # somebody writes: who is known already need not wait
            work.audit_log.append("bea", "account.made", "account/bea")
            assert client.get("/api/v1/failures", headers=owner).status_code == 200
    assert replace(PROXY).logins
    world.store.close()
