"""What a token of some clusters or teams may send, see and do."""

from dataclasses import dataclass

from service.contracts.event import JobCompletion
from service.errors import FieldError
from service.failures.records import Visibility
from service.people.records import Token

SHA256_HEX = 64  # characters


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
