"""Builds the login methods from the settings."""

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from service.errors import ConfigurationError
from service.people.config import SCOPES, LoginMethods, Provider, Proxy, is_safe_address
from service.people.identity import ClaimNames
from service.people.roles import parse_roles

SHORTEST_SECRET = 32  # bytes, as many as a SHA-256 key has (RFC 2104, section 3)
# RFC 6749, section 3.3.
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}")


def build(
    *,
    roles: Sequence[str],
    claims: ClaimNames,
    issuer: str | None,
    client_id: str | None,
    client_secret: str | None,
    public_url: str | None,
    proxy_secret: str | None,
    one_time_codes_required: bool = False,
    scopes: Sequence[str] = SCOPES,
) -> LoginMethods:
    """The configured login methods.

    Raises:
        ConfigurationError: incomplete settings, an extra that is not installed, or no role mapping.
    """
    if issuer is None and (client_id is not None or client_secret is not None):
        given = "FAULTLINE_OIDC_CLIENT_SECRET" if client_id is None else "FAULTLINE_OIDC_CLIENT_ID"
        raise ConfigurationError(f"{given}: expected FAULTLINE_OIDC_ISSUER with it; without it nobody logs in by OIDC")
    provider = None if issuer is None else _provider(issuer, client_id, client_secret, public_url, scopes)
    proxy = None if proxy_secret is None else _proxy(proxy_secret, claims)
    if (provider is not None or proxy is not None) and not roles:
        raise ConfigurationError("FAULTLINE_ROLES: expected group=role pairs that define who may log in")
    secure = public_url is not None and public_url.lower().startswith("https://")
    methods = LoginMethods(
        parse_roles(roles), claims, provider, proxy, secure=secure, one_time_codes_required=one_time_codes_required
    )
    if client_secret is None:
        return methods
    return replace(methods, state_key=sha256(f"faultline login state\n{client_secret}".encode()).digest())


def _proxy(secret: str, claims: ClaimNames) -> Proxy:
    # Checked here too: with an empty secret, every request would come from the proxy.
    if len(secret.encode()) < SHORTEST_SECRET:
        raise ConfigurationError(f"FAULTLINE_PROXY_SECRET: expected at least {SHORTEST_SECRET} bytes")
    return Proxy(secret, claims)


def _provider(
    issuer: str, client_id: str | None, client_secret: str | None, public_url: str | None, scopes: Sequence[str]
) -> Provider:
    if not is_safe_address(issuer):
        raise ConfigurationError(
            "FAULTLINE_OIDC_ISSUER: expected an https:// address, since whoever changes an answer of the provider can "
            "log in as anybody; http:// is for a provider on this machine only"
        )
    if client_id is None or public_url is None:
        raise ConfigurationError("FAULTLINE_OIDC_ISSUER needs FAULTLINE_OIDC_CLIENT_ID and FAULTLINE_PUBLIC_URL")
    if "openid" not in scopes or not all(_SCOPE.fullmatch(scope) for scope in scopes):
        raise ConfigurationError('FAULTLINE_OIDC_SCOPES: expected names with commas, "openid" among them')
    try:
        from service.people import oidc  # noqa: PLC0415 -- an extra
    except ImportError:
        raise ConfigurationError("FAULTLINE_OIDC_ISSUER needs the extra: pip install 'faultline[oidc]'") from None
    return oidc.Provider(issuer, client_id, client_secret, f"{public_url.rstrip('/')}/login/oidc/callback", scopes)
