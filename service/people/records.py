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
