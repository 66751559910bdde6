"""Builds the login methods from the settings."""

import re
from dataclasses import replace
from hashlib import sha256

from service.errors import ConfigurationError
from service.people.identity import ClaimNames
from service.people.login_methods import LoginMethods, Provider, Proxy, is_safe_address
from service.people.records import SHORTEST_SECRET, LoginOptions
from service.people.roles import parse_roles

# RFC 6749, section 3.3.
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}")


def build(options: LoginOptions) -> LoginMethods:
    """The configured login methods.

    Raises:
        ConfigurationError: incomplete settings, an extra that is not installed, or no role mapping.
    """
    claims = ClaimNames(options.user_claim, options.groups_claim, options.teams_claim)
    provider = _provider(options)
    proxy = None if options.proxy_secret is None else _proxy(options.proxy_secret, claims)
    if (provider is not None or proxy is not None) and not options.roles:
        raise ConfigurationError("FAULTLINE_ROLES: expected group=role pairs that define who may log in")
    methods = LoginMethods(
        parse_roles(options.roles),
        claims,
        provider,
        proxy,
        secure=options.public_url is not None and options.public_url.lower().startswith("https://"),
        one_time_codes_required=options.one_time_codes_required,
    )
    if options.client_secret is None:
        return methods
    return replace(methods, state_key=sha256(f"faultline login state\n{options.client_secret}".encode()).digest())


def _proxy(secret: str, claims: ClaimNames) -> Proxy:
    # Checked here too: with an empty secret, every request would come from the proxy.
    if len(secret.encode()) < SHORTEST_SECRET:
        raise ConfigurationError(f"FAULTLINE_PROXY_SECRET: expected at least {SHORTEST_SECRET} bytes")
    return Proxy(secret, claims)


def _provider(options: LoginOptions) -> Provider | None:
    issuer, client_id, client_secret = options.issuer, options.client_id, options.client_secret
    if issuer is None:
        if client_id is None and client_secret is None:
            return None
        given = "FAULTLINE_OIDC_CLIENT_SECRET" if client_id is None else "FAULTLINE_OIDC_CLIENT_ID"
        raise ConfigurationError(f"{given}: expected FAULTLINE_OIDC_ISSUER with it; without it nobody logs in by OIDC")
    if not is_safe_address(issuer):
        raise ConfigurationError(
            "FAULTLINE_OIDC_ISSUER: expected an https:// address, since whoever changes an answer of the provider can "
            "log in as anybody; http:// is for a provider on this machine only"
        )
    if client_id is None or options.public_url is None:
        raise ConfigurationError("FAULTLINE_OIDC_ISSUER needs FAULTLINE_OIDC_CLIENT_ID and FAULTLINE_PUBLIC_URL")
    if "openid" not in options.scopes or not all(_SCOPE.fullmatch(scope) for scope in options.scopes):
        raise ConfigurationError('FAULTLINE_OIDC_SCOPES: expected names with commas, "openid" among them')
    try:
        from service.people import oidc  # noqa: PLC0415 -- an extra
    except ImportError:
        raise ConfigurationError("FAULTLINE_OIDC_ISSUER needs the extra: pip install 'faultline[oidc]'") from None
    back = f"{options.public_url.rstrip('/')}/login/oidc/callback"
    return oidc.Provider(issuer, client_id, client_secret, back, options.scopes)
