"""Login methods other than API tokens and local accounts."""

import secrets
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from service.internet_addresses import LOOPBACK
from service.people.identity import ClaimNames
from service.people.roles import RoleMap


@dataclass(frozen=True, slots=True)
class PendingLogin:
    """A started login at a provider: the URL for the browser, and the values that the callback must match."""

    url: str
    state: str
    nonce: str
    verifier: str


class Provider(Protocol):
    """An identity provider (service.people.oidc.Provider)."""

    def start(self) -> PendingLogin:
        """Start a login."""
        ...

    def finish(self, code: str, *, nonce: str, verifier: str) -> dict[str, Any]:
        """The person's claims, for the authorization code of the callback."""
        ...


@dataclass(frozen=True, slots=True)
class Proxy:
    """An authenticating reverse proxy: it sends `secret` and the person's claims in headers."""

    secret: str
    claims: ClaimNames


@dataclass(frozen=True, slots=True)
class LoginMethods:
    """Configured login methods. `provider` and `proxy` are None if not configured.

    `secure`: the public address of the service has TLS, so that cookies and browsers may be bound to it.
    `one_time_codes_required`: local accounts without a second factor can't log in.
    `state_key` signs the cookie of a login at the provider; all processes need the same one.
    """

    roles: RoleMap = field(default_factory=lambda: RoleMap({}))
    claims: ClaimNames = field(default_factory=ClaimNames)
    provider: Provider | None = None
    proxy: Proxy | None = None
    secure: bool = False
    one_time_codes_required: bool = False
    state_key: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    @property
    def logins(self) -> bool:
        """Whether external authentication is configured, so that anonymous access is refused."""
        return self.provider is not None or self.proxy is not None


def is_safe_address(url: object) -> bool:
    """Whether an address has TLS or is on this machine, so that nobody changes its answers on their way."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
        host = parts.hostname or ""
    except ValueError:
        return False
    return host != "" and (parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK))
