"""API tokens: created and revoked with an entry in the audit log, and what one of some clusters or teams may do."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from service.clock import Clock
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.errors import FieldError, invalid
from service.failures.records import Visibility
from service.people.records import Token

MOST_DAYS = 3_650
SHA256_HEX = 64  # characters


def create(
    store: Store,
    clock: Clock,
    name: str,
    scopes: Collection[str],
    *,
    actor: str,
    clusters: Collection[str] = (),
    teams: Collection[str] = (),
    days: int | None = None,
) -> tuple[Token, str]:
    """Create a token; returns it and its secret, which is shown only once.

    Args:
        store: the database.
        clock: now.
        name: of the token.
        scopes: what it may do.
        actor: who creates it, for the audit log.
        clusters: the only clusters that it may work for; empty: any.
        teams: the only teams that it may work for; empty: any.
        days: until it expires, 1 to 3,650; None: never.

    Raises:
        Conflict: an unrevoked token has this name.
        InvalidInput: a wrong name, scope, cluster, team or number of days.
        Unavailable: the database does not answer.
    """
    if days is not None and not 1 <= days <= MOST_DAYS:
        raise invalid("days", f"1 to {MOST_DAYS}", str(days))
    ends = None if days is None else clock.now() + timedelta(days=days)
    with store.unit_of_work() as work:
        token, secret = work.tokens.create(name, scopes, clusters=clusters, teams=teams, expires_at=ends)
        bound = {"clusters": token.clusters, "teams": token.teams, "expires_at": ends and ends.isoformat()}
        after = {"scopes": sorted(scopes)} | {field: value for field, value in bound.items() if value}
        work.audit_log.append(actor, "token.made", f"token/{name}", after=after)
    return token, secret


def revoke(store: Store, name: str, *, actor: str) -> None:
    """Revoke a token at once.

    Raises:
        NotFound: no unrevoked token has this name.
        Unavailable: the database does not answer.
    """
    with store.unit_of_work() as work:
        work.tokens.revoke(name)
        work.audit_log.append(actor, "token.revoked", f"token/{name}")


@dataclass(frozen=True, slots=True)
class Binding:
    """The clusters and teams of a token; empty: any."""

    clusters: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether the token is bound at all."""
        return bool(self.clusters or self.teams)

    def allows(self, cluster: str) -> bool:
        """Whether the token is for this cluster."""
        return not self.clusters or cluster in self.clusters

    def problem(self, event: JobCompletion) -> FieldError | None:
        """Why the token may not send an event; None if it may."""
        if not self.allows(event.cluster):
            return FieldError("cluster", f"a cluster of this token: {', '.join(self.clusters)}", event.cluster)
        if self.teams and event.team not in self.teams:
            return FieldError("team", f"a team of this token: {', '.join(self.teams)}", event.team)
        # The identity of an event without an id is a hash. Given as an id, it would block an event of another cluster.
        given = event.event_id
        if self and given is not None and len(given) == SHA256_HEX and given != _own_key(event):
            return FieldError("event_id", "an id that is not the hash of another event", given)
        return None


def binding_of(token: Token) -> Binding:
    """The binding of a token."""
    return Binding(token.clusters, token.teams)


def scopes_of_token(token: Token) -> frozenset[str]:
    """The scopes of a token; one that is bound has no access to data of all clusters and teams."""
    if not binding_of(token) or "read" not in token.scopes:
        return token.scopes
    return token.scopes - {"read"} | {"own"}


def visible_to_token(token: Token) -> Visibility | None:
    """The failures that a token sees; None: all."""
    if not binding_of(token):
        return None
    return Visibility((), token.teams, token.clusters or None)


def _own_key(event: JobCompletion) -> str:
    return event.model_copy(update={"event_id": None}).key()
