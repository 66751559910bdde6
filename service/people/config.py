"""How people get in, beside API tokens and local accounts."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from service.people.attempts import LoginAttempts
from service.people.identity import ClaimNames
from service.people.roles import RoleMap


@dataclass(frozen=True, slots=True)
class PendingLogin:
    """A login at a provider under way: where the browser goes, and what it must bring back."""

    url: str
    state: str
    nonce: str
    verifier: str


class Provider(Protocol):
    """An identity provider (service.people.oidc.Provider)."""

    def start(self) -> PendingLogin:
        """Begin a login."""
        ...

    def finish(self, code: str, *, nonce: str, verifier: str) -> dict[str, Any]:
        """The person's claims, for the code that the browser brought back."""
        ...


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy in front that logs people in: it shows `secret` and names them in headers (`claims`)."""

    secret: str
    claims: ClaimNames


@dataclass(frozen=True, slots=True)
class LoginMethods:
    """Ways in. `provider` and `proxy` are None where not configured; `attempts` counts failed logins."""

    roles: RoleMap = field(default_factory=lambda: RoleMap({}))
    claims: ClaimNames = field(default_factory=ClaimNames)
    provider: Provider | None = None
    proxy: Proxy | None = None
    attempts: LoginAttempts = field(default_factory=LoginAttempts)

    @property
    def logins(self) -> bool:
        """Whether somebody else vouches for people, so that nobody comes in unknown."""
        return self.provider is not None or self.proxy is not None
