"""Records of people: plain frozen dataclasses, no SQL. Times are aware and in UTC."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

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
