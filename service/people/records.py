"""Records of people: plain frozen dataclasses, no SQL. Times are aware and in UTC."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

OIDC_SCOPES = ("openid", "profile", "email")  # what an identity provider is asked for
SHORTEST_SECRET = 32  # bytes, as many as a SHA-256 key has (RFC 2104, section 3)
COMMAND_LINE = "the command line"  # who acts, in the audit log and in records, where a command does
Scope = Literal["ingest", "publish", "labels", "hook", "read", "act", "admin"]


@dataclass(frozen=True, slots=True)
class Token:
    """An API token, without its secret.

    `clusters` and `teams`: the only clusters and teams that it may send, read and act for; empty: any.
    """

    id: int
    name: str
    scopes: frozenset[str]
    created_at: datetime
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    clusters: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """The address of a client, and the browser or program as it names itself; empty if unknown."""

    address: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session of an account that has not ended.

    Args:
        id: identifies the session; it is not the value of the cookie.
        created_at: the time of the login.
        used_at: the last recorded use, up to a minute old.
        until: the latest end; an unused session ends earlier.
        address: the address of the client at the login; empty if unknown.
        agent: the browser or program, as it named itself at the login; empty if unknown.
        current: whether the session is the one of the request.
    """

    id: str
    created_at: datetime
    used_at: datetime
    until: datetime
    address: str
    agent: str
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginOptions:
    """How people log in besides local accounts and API tokens; see the settings FAULTLINE_OIDC_*, _PROXY_*, _ROLES.

    `client_secret` and `proxy_secret` are not shown in its text.
    """

    roles: Sequence[str] = ()
    user_claim: str = "preferred_username"
    groups_claim: str = "groups"
    teams_claim: str | None = None
    issuer: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scopes: Sequence[str] = OIDC_SCOPES
    public_url: str | None = None
    proxy_secret: str | None = field(default=None, repr=False)
    one_time_codes_required: bool = False


@dataclass(frozen=True, slots=True)
class SavedView:
    """A list with its filters, under a name."""

    name: str
    page: str
    query: str
