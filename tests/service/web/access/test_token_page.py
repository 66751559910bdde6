"""API tokens on the settings page: an administrator creates and revokes them, and sees each secret once."""

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.web.access.test_auth import form_token, log_in
from tests.service.web.access.test_security_events import audited
from tests.service.web.world import World

SECRET = re.compile(r"<code data-copy>(flt_[A-Za-z0-9_-]+)</code>")


def send(client: TestClient, **fields: Any) -> tuple[int, str]:
    answer = client.post("/settings/tokens", data={"form_token": form_token(client, "/settings"), **fields})
    return answer.status_code, answer.text


@pytest.fixture
def admin(guarded: World) -> TestClient:
    """A browser that is logged in as an administrator."""
    client = guarded.client()
    log_in(client, guarded.token("admin", name="root"))
    return client


def test_a_token_is_created_its_secret_is_shown_once_and_works(guarded: World, admin: TestClient) -> None:
    fields = {"name": "board", "purpose": ["read", "ingest"], "clusters": "orion, lyra", "days": "30"}
    status, page = send(admin, **fields)
    assert status == 200
    found = SECRET.search(page)
    assert found is not None
    assert "The token board is created." in page
    later = admin.get("/settings").text
    assert found[1] not in later
    assert "expires 2026-12-20" in later
    assert "lyra, orion" in later
    with guarded.client(found[1]) as program:
        assert program.get("/api/v1/failures").status_code == 200
        assert program.post("/api/v1/automation:stop").status_code == 403
    assert audited(guarded, "token.made") == [("root", "token/board")]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "", "purpose": "read"}, "name: expected a name of 1 to 200 characters"),
        ({"name": "x"}, "purposes: expected one or more of ingest"),
        ({"name": "x", "purpose": "everything"}, "purposes: expected one or more of ingest"),
        ({"name": "x", "purpose": "hook"}, "only clusters: expected one cluster"),
        ({"name": "x", "purpose": "admin", "teams": "speech"}, "purposes: expected no admin"),
        ({"name": "x", "purpose": "read", "days": "a week"}, "days until it expires: expected 1 to 3650, not a week"),
        ({"name": "x", "purpose": "read", "days": "0"}, "days until it expires: expected 1 to 3650, not 0"),
        ({"name": "root", "purpose": "read"}, "a token named &#34;root&#34; exists"),
    ],
)
def test_a_refused_form_stays_open_and_names_the_field(admin: TestClient, fields: Any, message: str) -> None:
    status, page = send(admin, **fields)
    assert status in {409, 422}
    assert message in page
    assert '<details class="act" open><summary>Create a token' in page
    assert f'name="name" value="{fields["name"]}"' in page
    assert SECRET.search(page) is None


def test_a_token_is_revoked_at_once(guarded: World, admin: TestClient) -> None:
    secret = guarded.token("read", name="old")
    sent = {"form_token": form_token(admin, "/settings"), "name": "old"}
    answer = admin.post("/settings/tokens/revoke", data=sent)
    assert answer.headers["location"] == "/settings?notice=token_revoked#tokens"
    assert "Revoked. Requests with this token are now refused." in admin.get("/settings?notice=token_revoked").text
    with guarded.client(secret) as program:
        assert program.get("/api/v1/failures").status_code == 401
    assert audited(guarded, "token.revoked") == [("root", "token/old")]
    assert admin.post("/settings/tokens/revoke", data=sent).status_code == 404


def test_the_first_token_may_not_lock_out_who_creates_it(client: TestClient) -> None:
    assert "The first token ends the open access" in client.get("/settings").text
    status, page = send(client, name="board", purpose="read")
    assert status == 422
    assert "expected admin for the first token" in page
    assert client.get("/settings").status_code == 200, "the service is still open"
    assert send(client, name="root", purpose="admin")[0] == 200
    assert client.get("/settings").status_code == 303


def test_operators_and_forged_forms_create_none(guarded: World, admin: TestClient) -> None:
    client = guarded.client()
    log_in(client, guarded.token("read", "act", name="operator"))
    sent = {"form_token": form_token(client, "/"), "name": "x", "purpose": "admin"}
    for path in ("/settings/tokens", "/settings/tokens/revoke"):
        assert client.post(path, data=sent).status_code == 403
        assert admin.post(path, data={"name": "root", "purpose": "admin"}).status_code == 403
    assert admin.get("/settings/tokens").headers["location"] == "/settings#tokens"
