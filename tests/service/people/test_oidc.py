"""A login at an identity provider, over real HTTP on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from joserfc.jwk import RSAKey

from service.errors import Unavailable
from service.people.config import LoginMethods
from service.people.oidc import Provider
from service.people.roles import parse_roles
from tests.service.people.provider import IdentityProvider, running
from tests.service.web.world import World, make_world


@pytest.fixture
def issuer() -> Iterator[IdentityProvider]:
    with running() as provider:
        yield provider


@pytest.fixture
def world(tmp_path: Path, issuer: IdentityProvider) -> Iterator[World]:
    provider = Provider(issuer.issuer, "faultline", "client secret", "http://127.0.0.1:8080/login/oidc/callback")
    made = make_world(tmp_path, people=LoginMethods(parse_roles(["sre=operator"]), provider=provider))
    yield made
    made.store.close()


def log_in(client: TestClient, issuer: IdentityProvider, **claims: object) -> tuple[int, str]:
    away = client.get("/login/oidc?next=/failures")
    assert away.status_code == 303
    code = issuer.grant(away.headers["location"], **claims)
    state = away.headers["location"].partition("state=")[2].partition("&")[0]
    answer = client.get("/login/oidc/callback", params={"code": code, "state": state})
    return answer.status_code, answer.text


def test_a_login_returns_to_the_requested_page(world: World, issuer: IdentityProvider) -> None:
    with world.client() as client:
        assert client.get("/failures").status_code == 303
        status, page = log_in(client, issuer, preferred_username="ana", groups=["sre"])
        assert status == 200
        assert "url=/failures" in page
        assert client.get("/failures").status_code == 200
        assert client.get("/settings").status_code == 403


def test_a_person_without_a_role_is_refused(world: World, issuer: IdentityProvider) -> None:
    with world.client() as client:
        assert log_in(client, issuer, preferred_username="bob", groups=["ml"])[0] == 403
        assert client.get("/failures").status_code == 303


@pytest.mark.parametrize(
    "wrong", [{"nonce": "another"}, {"aud": "another"}, {"iss": "http://evil.example"}, {"exp": 1}]
)
def test_an_invalid_token_is_refused(world: World, issuer: IdentityProvider, wrong: dict[str, object]) -> None:
    issuer.claims = wrong
    with world.client() as client:
        assert log_in(client, issuer, preferred_username="ana", groups=["sre"])[0] == 403
        assert client.get("/failures").status_code == 303


def test_a_token_with_a_foreign_signature_is_refused(world: World, issuer: IdentityProvider) -> None:
    issuer.signing = RSAKey.generate_key(2048, {"kid": "one"})
    with world.client() as client:
        assert log_in(client, issuer, preferred_username="ana", groups=["sre"])[0] == 403


def test_an_answer_of_another_login_is_refused(world: World, issuer: IdentityProvider) -> None:
    with world.client() as client:
        away = client.get("/login/oidc")
        code = issuer.grant(away.headers["location"], preferred_username="ana", groups=["sre"])
        assert client.get(f"/login/oidc/callback?code={code}&state=guess").status_code == 403
    with world.client() as other:
        assert other.get(f"/login/oidc/callback?code={code}&state=guess").status_code == 422


def test_an_unreachable_provider_and_another_issuer_are_reported(issuer: IdentityProvider) -> None:
    closed = Provider("http://127.0.0.1:9", "faultline", None, "http://127.0.0.1/back")
    with pytest.raises(Unavailable, match="does not answer"):
        closed.start()
    right, issuer.issuer = issuer.issuer, "http://elsewhere.example"
    with pytest.raises(Unavailable, match="another issuer"):
        Provider(right, "faultline", None, "http://127.0.0.1/back").start()
