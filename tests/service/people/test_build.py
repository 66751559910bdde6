from dataclasses import replace

import pytest

from service.errors import ConfigurationError
from service.people.build import build
from service.people.login_methods import LoginMethods
from service.people.records import LoginOptions


def made(**given: object) -> LoginMethods:
    return build(replace(LoginOptions(roles=("*=viewer",)), **given))  # type: ignore[arg-type]  # by name


def test_by_default_no_external_authentication_is_configured() -> None:
    assert not made(roles=()).logins


def test_each_login_method_needs_all_of_its_settings() -> None:
    whole = made(issuer="https://id.example", client_id="f", public_url="https://faultline.example/")
    assert whole.logins
    assert made(proxy_secret="s" * 32).logins
    with pytest.raises(ConfigurationError, match="FAULTLINE_PUBLIC_URL"):
        made(issuer="https://id.example", client_id="f")
    with pytest.raises(ConfigurationError, match="FAULTLINE_ROLES"):
        made(roles=(), proxy_secret="s" * 32)


@pytest.mark.parametrize("issuer", ["http://id.example", "id.example", "file:///etc/passwd", "https://", "http://[::1"])
def test_an_issuer_whose_answers_others_can_change_is_refused(issuer: str) -> None:
    with pytest.raises(ConfigurationError, match="FAULTLINE_OIDC_ISSUER"):
        made(issuer=issuer, client_id="f", public_url="https://faultline.example/")


def test_a_provider_is_asked_for_the_scopes_of_the_settings() -> None:
    known = {"issuer": "https://id.example", "client_id": "f", "public_url": "https://faultline.example/"}
    for scopes in (("profile",), ("openid", "gro ups"), ("openid", 'a"b')):
        with pytest.raises(ConfigurationError, match="FAULTLINE_OIDC_SCOPES"):
            made(**known, scopes=scopes)
    assert made(**known, scopes=("openid", "profile", "groups")).logins


@pytest.mark.parametrize("given", ["client_id", "client_secret"])
def test_a_client_without_an_issuer_is_refused(given: str) -> None:
    with pytest.raises(ConfigurationError, match=f"FAULTLINE_OIDC_{given.upper()}"):
        made(**{given: "x" * 40})


@pytest.mark.parametrize("secret", ["", "short", "s" * 31, "ü" * 15])
def test_a_proxy_secret_that_can_be_guessed_is_refused(secret: str) -> None:
    with pytest.raises(ConfigurationError, match="FAULTLINE_PROXY_SECRET"):
        made(proxy_secret=secret)


@pytest.mark.parametrize("roles", [("sre=root",), ("sre",), ("=admin",), ("sre=admin", "sre=viewer")])
def test_wrong_roles_are_refused(roles: tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError, match="FAULTLINE_ROLES"):
        made(roles=roles, proxy_secret="s" * 32)
