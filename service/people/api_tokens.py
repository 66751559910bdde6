"""API tokens are created and revoked, each with its entry in the audit log: by the command line and by the pages."""

from collections.abc import Collection
from datetime import timedelta

from service.clock import Clock
from service.db.session import Store
from service.errors import invalid
from service.people.records import Token

MOST_DAYS = 3_650


def create(
    store: Store,
    clock: Clock,
    name: str,
    scopes: Collection[str],
    *,
    by: str,
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
        by: who creates it, for the audit log.
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
        work.audit_log.append(by, "token.made", f"token/{name}", after=after)
    return token, secret


def revoke(store: Store, name: str, *, by: str) -> None:
    """Revoke a token at once.

    Raises:
        NotFound: no unrevoked token has this name.
        Unavailable: the database does not answer.
    """
    with store.unit_of_work() as work:
        work.tokens.revoke(name)
        work.audit_log.append(by, "token.revoked", f"token/{name}")
