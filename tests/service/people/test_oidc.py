"""A login at an identity provider, over real HTTP on this machine."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from pathlib import Path

import pytest
import requests
from fastapi.testclient import TestClient
from joserfc.jwk import RSAKey

from service.errors import Unavailable
from service.people import oidc
from service.people.login_limits import SharedLimit
from service.people.login_methods import LoginMethods
from service.people.oidc import MOST_BYTES, WAITING, Provider
from service.people.roles import parse_roles
from service.web.limits.caller_limits import ActionLimits, RateLimit
from tests.labs.certificates import authority
from tests.service.people.provider import IdentityProvider, running
from tests.service.raw_server import Server
from tests.service.web.world import HERE, World, make_world, stop_rate_windows


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


def test_a_provider_is_asked_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trusted = authority(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(trusted.certificate))
    with running(trusted.issue("provider")) as issuer:
        provider = Provider(issuer.issuer, "faultline", None, "http://127.0.0.1/back")
        login = provider.start()
        claims = provider.finish(issuer.grant(login.url), nonce=login.nonce, verifier=login.verifier)
    assert claims["sub"] == "1"


def test_the_provider_is_asked_for_the_scopes(issuer: IdentityProvider) -> None:
    back = "http://127.0.0.1:8080/login/oidc/callback"
    usual = Provider(issuer.issuer, "faultline", None, back).start().url
    assert "scope=openid+profile+email&" in usual
    wanted = Provider(issuer.issuer, "faultline", None, back, scopes=("openid", "groups")).start().url
    assert "scope=openid+groups&" in wanted


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


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"iat": 4_000_000_000}, "(iat; the clocks of"), ({"exp": 1}, "(exp; the clocks of"), ({"aud": "x"}, "(aud)")],
)
def test_a_refused_token_is_explained(
    world: World, issuer: IdentityProvider, wrong: dict[str, object], said: str
) -> None:
    issuer.claims = wrong
    with world.client() as client:
        assert said in log_in(client, issuer, preferred_username="ana", groups=["sre"])[1]


def test_a_login_succeeds_although_the_provider_has_keys_of_kinds_that_are_unknown(
    world: World, issuer: IdentityProvider
) -> None:
    own = issuer.key.as_dict(private=False)
    issuer.further_keys = [
        {"kty": "EC", "crv": "P-999", "x": "AAAA", "y": "AAAA", "kid": "two"},
        {"kid": "three"},
        {**own, "kid": "four", "use": "tls"},
    ]
    with world.client() as client:
        assert log_in(client, issuer, preferred_username="ana", groups=["sre"])[0] == 200


@pytest.mark.parametrize("answer", ["x", {"access_token": "a", "expires_in": "soon"}], ids=str)
def test_an_answer_that_is_none_is_a_failure_of_the_provider(
    world: World, issuer: IdentityProvider, answer: object
) -> None:
    issuer.odd_answer = answer
    with world.client() as client:
        assert log_in(client, issuer, preferred_username="ana", groups=["sre"])[0] == 503


@pytest.mark.parametrize("wrong", ["http://login.example/x", "ftp://login.example", "javascript:alert(1)", "", 7, None])
@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
def test_an_endpoint_whose_answers_others_can_change_is_not_used(
    issuer: IdentityProvider, name: str, wrong: object
) -> None:
    issuer.metadata[name] = wrong
    with pytest.raises(Unavailable, match=f"no https:// address as {name}"):
        Provider(issuer.issuer, "faultline", None, "http://127.0.0.1/back").start()


def test_an_endless_answer_takes_no_memory(
    world: World, issuer: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.further_keys = [{"kty": "unknown", "x": "x" * MOST_BYTES}]
    with world.client() as client:
        assert client.get("/login/oidc").status_code == 503
    issuer.further_keys.clear()
    with world.client() as client:
        assert client.get("/login/oidc").status_code == 303
        issuer.odd_answer = {"access_token": "a", "id_token": "x" * MOST_BYTES}
        status, page = log_in(client, issuer, preferred_username="ana")
        assert (status, "does not answer" in page) == (503, True)
        issuer.odd_answer = None
        monkeypatch.setattr(oidc, "WHOLE_S", -1)
        assert log_in(client, issuer, preferred_username="ana", groups=["sre"])[0] == 503


def test_headers_that_drip_end_at_the_limit_of_the_whole_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, and the last one long after the limit."""
    over, whole = threading.Event(), threading.Event()

    def drip(client: socket.socket) -> None:
        for byte in b"HTTP/1.1 200 OK\r\nx-long: " + b"y" * 100:
            client.send(bytes([byte]))
            if over.wait(0.05):
                return
        whole.set()

    monkeypatch.setattr(oidc, "WHOLE_S", 0.3)
    server = Server(drip)
    try:
        with pytest.raises(Unavailable, match="does not answer"):
            Provider(f"http://{server.address}", "faultline", None, "http://127.0.0.1/back").start()
        assert server.requests == 1
        assert not whole.is_set()
    finally:
        over.set()
        server.close()


def test_a_code_is_sent_to_the_provider_only(world: World, issuer: IdentityProvider) -> None:
    with running() as elsewhere, world.client() as client:
        issuer.token_moved = f"{elsewhere.issuer}/token"
        assert log_in(client, issuer, preferred_username="ana", groups=["sre"])[0] == 503
        assert elsewhere.asked == []
        issuer.token_moved = ""
        assert log_in(client, issuer, preferred_username="ana", groups=["sre"])[0] == 200


def test_a_token_with_a_foreign_signature_is_refused(world: World, issuer: IdentityProvider) -> None:
    issuer.signing = RSAKey.generate_key(2048, {"kid": "one"})
    with world.client() as client:
        assert log_in(client, issuer, preferred_username="ana", groups=["sre"])[0] == 403


def test_a_login_succeeds_at_once_after_the_provider_changed_its_key(world: World, issuer: IdentityProvider) -> None:
    with world.client() as client:
        assert log_in(client, issuer, preferred_username="ana", groups=["sre"])[0] == 200
    issuer.key = RSAKey.generate_key(2048, {"kid": "two", "use": "sig", "alg": "RS256"})
    with world.client() as client:
        assert log_in(client, issuer, preferred_username="ana", groups=["sre"])[0] == 200


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


def test_a_provider_that_does_not_answer_takes_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sees the login page can ask for a login, and each waits for the provider."""
    asked, answer = threading.Semaphore(0), threading.Event()

    def slow(*given: object, **named: object) -> requests.Response:
        del given, named
        asked.release()
        answer.wait(60)
        raise requests.ConnectionError

    monkeypatch.setattr(requests.Session, "get", slow)
    provider = Provider("https://login.example", "faultline", None, "https://faultline.example/login/oidc/callback")
    with ThreadPoolExecutor(40) as pool:
        logins = [pool.submit(provider.start) for _ in range(40)]
        assert asked.acquire(timeout=120)
        refused, waiting = wait(logins, timeout=1)
        answer.set()
    assert len(waiting) == WAITING
    assert {type(one.exception()) for one in (*refused, *waiting)} == {Unavailable}


def test_a_stranger_makes_the_service_ask_the_provider_a_limited_number_of_times(
    tmp_path: Path, issuer: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sees the login page has a valid cookie: each code after it was a request to the provider."""
    provider = Provider(issuer.issuer, "faultline", "client secret", "http://127.0.0.1:8080/login/oidc/callback")
    people = LoginMethods(parse_roles(["sre=operator"]), provider=provider)
    stop_rate_windows(monkeypatch)
    limits = ActionLimits(codes=RateLimit(3, 5), logins=SharedLimit("logins", 1, timedelta(minutes=5)))
    world = make_world(tmp_path, people=people, action_limits=limits)
    with world.client() as client:
        state = client.get("/login/oidc").headers["location"].partition("state=")[2].partition("&")[0]
        back = f"/login/oidc/callback?code=guess&state={state}"
        with world.services.codes.one_of("testclient"), world.services.codes.one_of("testclient"):
            assert client.get(back).status_code == 403
            with world.services.codes.one_of("testclient"):
                assert client.get(back).status_code == 429
        assert client.get(back).status_code == 403
        assert client.get(back).status_code == 429
        elsewhere = TestClient(world.app, base_url=HERE, client=("10.0.0.9", 1), follow_redirects=False)
        assert log_in(elsewhere, issuer, preferred_username="ana", groups=["sre"])[0] == 200
        assert log_in(elsewhere, issuer, preferred_username="ana", groups=["sre"])[0] == 429, "each is in the audit log"
    world.store.close()


def test_an_account_belongs_to_issuer_and_subject(world: World, issuer: IdentityProvider) -> None:
    with world.client() as client:
        assert log_in(client, issuer, sub="a", preferred_username="ana", groups=["sre"])[0] == 200
        # Somebody else who got the name of ana later, and ana under another name:
        assert log_in(client, issuer, sub="b", preferred_username="ana", groups=["sre"])[0] == 403
        assert log_in(client, issuer, sub="a", preferred_username="root", groups=["sre"])[0] == 403
        assert log_in(client, issuer, sub="", preferred_username="eve", groups=["sre"])[0] == 403
        assert log_in(client, issuer, sub="b", preferred_username="bob", groups=["sre"])[0] == 200
    with world.store.reading() as reading:
        assert {(one.name, one.identity) for one in reading.accounts.list()} == {
            ("ana", (issuer.issuer, "a")),
            ("bob", (issuer.issuer, "b")),
        }


def test_an_account_of_an_earlier_release_is_bound_at_its_next_login(world: World, issuer: IdentityProvider) -> None:
    with world.store.unit_of_work() as work:
        work.accounts.create("ana", "operator", source="oidc", users=("ana",))
    with world.client() as client:
        assert log_in(client, issuer, sub="a", preferred_username="ana", groups=["sre"])[0] == 200
        assert log_in(client, issuer, sub="b", preferred_username="ana", groups=["sre"])[0] == 403


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"aud": ["faultline", "other"]}, 403),
        ({"aud": ["faultline", "other"], "azp": "other"}, 403),
        ({"azp": "other"}, 403),
        ({"aud": ["faultline", "other"], "azp": "faultline"}, 200),
    ],
)
def test_a_token_of_another_party_is_refused(
    world: World, issuer: IdentityProvider, claims: dict[str, object], status: int
) -> None:
    with world.client() as client:
        assert log_in(client, issuer, preferred_username="ana", groups=["sre"], **claims)[0] == status


@pytest.mark.parametrize("groups", ["not sre", "x,sre", "sre x"])
def test_a_group_is_never_a_part_of_a_text(world: World, issuer: IdentityProvider, groups: str) -> None:
    with world.client() as client:
        assert log_in(client, issuer, preferred_username="ana", groups=groups)[0] == 403


def test_a_login_that_another_page_planted_or_that_is_old_is_refused(world: World) -> None:
    with world.client() as client:
        client.get("/login/oidc")
        signed = client.cookies["faultline_oidc"]
        forged = signed.replace(signed[:8], "5b226161")
        for wrong in (forged, signed.partition(".")[0], signed[:-1], "é"):
            client.cookies.clear()
            headers = {b"Cookie": b"faultline_oidc=" + wrong.encode()}
            assert client.get("/login/oidc/callback?code=x&state=y", headers=headers).status_code == 422
        world.clock.sleep(601)
        headers = {b"Cookie": b"faultline_oidc=" + signed.encode()}
        assert client.get("/login/oidc/callback?code=x&state=y", headers=headers).status_code == 422
