"""Tokens as Bearer and as a logged-in browser."""

import re
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from service.web.pages.people.login import local_path
from service.web.sessions import COOKIE
from tests.service.web.world import World


def form_token(client: TestClient, path: str = "/login") -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', client.get(path).text)
    assert found is not None
    return found[1]


def log_in(client: TestClient, secret: str, wanted: str = "/") -> int:
    form = {"token": secret, "form_token": form_token(client), "next": wanted}
    return client.post("/login", data=form).status_code


def test_a_page_without_login_leads_to_the_form_and_back(guarded: World) -> None:
    secret = guarded.token("read")
    with guarded.client() as client:
        away = client.get("/failures?side=user")
        assert (away.status_code, away.headers["location"]) == (303, "/login?next=%2Ffailures%3Fside%3Duser")
        form = client.get(away.headers["location"]).text
        assert 'value="/failures?side=user"' in form
        sent = {"token": f" {secret}\n", "form_token": form_token(client), "next": "/failures?side=user"}
        back = client.post("/login", data=sent)
        assert (back.status_code, back.headers["location"]) == (303, "/failures?side=user")
        assert client.get("/failures").status_code == 200
        assert client.get("/settings").status_code == 403


def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites(guarded: World) -> None:
    secret = guarded.token("read")
    with guarded.client(base_url="https://faultline.example") as client:
        answer = client.post("/login", data={"token": secret, "form_token": form_token(client)})
        cookie = next(value for value in answer.headers.get_list("set-cookie") if value.startswith(COOKIE))
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "Secure" in cookie
        assert secret not in cookie


def test_a_wrong_token_says_so_and_opens_nothing(guarded: World) -> None:
    with guarded.client() as client:
        answer = client.post("/login", data={"token": "flt_guess", "form_token": form_token(client)})
        assert answer.status_code == 401
        assert "This token is unknown or has been revoked." in answer.text
        assert client.get("/").status_code == 303


def test_a_revoked_token_is_worthless_at_once_for_programs_and_browsers(guarded: World) -> None:
    secret = guarded.token("read", name="ana")
    with guarded.client() as browser, guarded.client(secret) as program:
        log_in(browser, secret)
        assert browser.get("/").status_code == 200
        assert program.get("/api/v1/stats").status_code == 200
        with guarded.store.unit_of_work() as work:
            work.tokens.revoke("ana")
        assert browser.get("/").status_code == 303
        assert program.get("/api/v1/stats").status_code == 401


def test_logging_out_ends_the_session(guarded: World) -> None:
    secret = guarded.token("read")
    with guarded.client() as client:
        log_in(client, secret)
        cookie = client.cookies[COOKIE]
        assert client.post("/logout", data={"form_token": form_token(client, "/")}).status_code == 303
        client.cookies.set(COOKIE, cookie)
        assert client.get("/").status_code == 303


def test_a_session_runs_out(guarded: World) -> None:
    secret = guarded.token("read")
    with guarded.client() as client:
        log_in(client, secret)
        guarded.clock.at += timedelta(hours=12, seconds=1)
        assert client.get("/").status_code == 303


@pytest.mark.parametrize("sent", ["", "x", "é"])
def test_a_form_that_this_server_did_not_make_is_refused(guarded: World, sent: str) -> None:
    secret = guarded.token("read")
    with guarded.client() as client:
        form_token(client)
        assert client.post("/login", data={"token": secret, "form_token": sent}).status_code == 403
    with guarded.client() as without_cookies:
        assert without_cookies.post("/login", data={"token": secret, "form_token": ""}).status_code == 403


def test_a_logged_in_browser_can_not_be_used_by_another_sites_page(guarded: World) -> None:
    secret = guarded.token("ingest", "read")
    with guarded.client() as client:
        log_in(client, secret)
        foreign = {"Origin": "https://evil.example"}
        assert client.post("/api/v1/events", content=b"{}", headers=foreign).status_code == 403
        bearer = {"Authorization": f"Bearer {secret}", **foreign}
        assert client.post("/api/v1/events", content=b"{}", headers=bearer).status_code == 200


@pytest.mark.parametrize(
    "wanted",
    ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\r\nX: y", "", None],
)
def test_the_way_back_after_a_login_never_leaves_this_server(wanted: str | None) -> None:
    assert local_path(wanted) == "/"


def test_the_way_back_keeps_path_and_query() -> None:
    assert local_path("/failures?side=user&q=a%20b") == "/failures?side=user&q=a%20b"


def test_on_loopback_the_first_token_closes_the_door(world: World) -> None:
    with world.client() as client:
        assert client.get("/api/v1/stats").status_code == 200
        secret = world.token("read")
        assert client.get("/api/v1/stats").status_code == 401
        assert client.get("/api/v1/stats", headers={"Authorization": f"Bearer {secret}"}).status_code == 200


def test_a_wrong_token_is_reported_even_where_none_is_needed(world: World) -> None:
    with world.client("flt_old") as client:
        assert client.get("/api/v1/stats").status_code == 401


def test_a_401_names_the_scheme(guarded: World) -> None:
    with guarded.client() as client:
        answer = client.get("/api/v1/stats")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert client.get("/api/v1/stats", headers={"Authorization": "Basic YTpi"}).status_code == 401


def test_use_of_a_token_is_remembered_to_the_minute(guarded: World) -> None:
    secret = guarded.token("read", name="ana")

    def last_used() -> object:
        with guarded.store.reading() as reading:
            return reading.tokens.list()[0].last_used_at

    with guarded.client(secret) as client:
        client.get("/api/v1/stats")
        first = last_used()
        assert first == guarded.clock.at
        guarded.clock.at += timedelta(seconds=30)
        client.get("/api/v1/stats")
        assert last_used() == first
        guarded.clock.at += timedelta(seconds=31)
        client.get("/api/v1/stats")
        assert last_used() == guarded.clock.at


@pytest.mark.parametrize(
    ("scopes", "clusters", "path", "expected"),
    [
        (["ingest"], [], "/api/v1/failures", "a token with the purpose read"),
        (["ingest"], [], "/api/v1/stats", "a token with the purpose read"),
        (["read"], ["orion"], "/api/v1/stats", "a token with the purpose read that is bound to no cluster or team"),
        (["hook"], ["orion"], "/api/v1/resubmissions", "a token with the purpose read"),
    ],
)
def test_a_refusal_names_a_token_that_would_do(
    guarded: World, scopes: list[str], clusters: list[str], path: str, expected: str
) -> None:
    with guarded.client(guarded.token(*scopes, clusters=clusters)) as program:
        refused = program.get(path)
    assert refused.status_code == 403
    assert refused.json()["detail"] == f"this needs {expected}"
    assert refused.json()["errors"][0]["expected"] == expected
