"""API tokens: only the SHA-256 of the secret is stored.

The secret is 32 random bytes, so a plain hash is enough: it cannot be guessed, and a lookup is cheap.
"""

import builtins
import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime
from typing import Any, get_args

import orjson
from sqlalchemy import ColumnElement, Row, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from service.errors import Conflict, NotFound, damage_translated, invalid
from service.people.records import Scope, Token
from service.people.tables import tokens
from service.sql.reader import TimedReader
from service.sql.types import clean, names_read, utc

PREFIX = "flt_"  # so that secret scanners recognise a token
SCOPES: tuple[str, ...] = get_args(Scope)
_ANY = select(tokens.c.id).where(tokens.c.revoked_at.is_(None)).limit(1)
_NAME = 200  # characters


class TokenReader(TimedReader):
    """Reads API tokens."""

    def find(self, secret: str) -> Token | None:
        """The unrevoked token with this secret, if it has not expired."""
        row = self._connection.execute(select(tokens).where(tokens.c.sha256 == hashed(secret), *self._valid())).first()
        return None if row is None else _token(row)

    def get(self, token_id: int) -> Token | None:
        """The unrevoked token with this number, if it has not expired."""
        row = self._connection.execute(select(tokens).where(tokens.c.id == token_id, *self._valid())).first()
        return None if row is None else _token(row)

    def has(self, name: str) -> bool:
        """Whether an unrevoked token has this name."""
        return self._by_name(name) is not None

    def _by_name(self, name: str) -> Row[Any] | None:
        return self._connection.execute(
            select(tokens).where(tokens.c.name == clean(name), tokens.c.revoked_at.is_(None))
        ).first()

    def _valid(self) -> tuple[ColumnElement[bool], ...]:
        unexpired = or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > utc(self._clock.now()))
        return tokens.c.revoked_at.is_(None), unexpired

    def list(self) -> tuple[Token, ...]:
        """All tokens, including revoked ones, oldest first."""
        return tuple(_token(row) for row in self._connection.execute(select(tokens).order_by(tokens.c.id)))

    def any(self) -> bool:
        """Whether an unrevoked token exists; an expired one counts, so that expiry never opens a service."""
        return self._connection.execute(_ANY).first() is not None


class TokenRepository(TokenReader):
    """Reads and writes API tokens."""

    def create(
        self,
        name: str,
        scopes: Collection[str],
        *,
        clusters: Collection[str] = (),
        teams: Collection[str] = (),
        expires_at: datetime | None = None,
    ) -> tuple[Token, str]:
        """Create a token; returns it and its secret, which is shown only once.

        Raises:
            Conflict: an unrevoked token has this name.
            InvalidInput: an unknown scope, or none; a name that is empty or over 200 characters; clusters or teams that
                do not fit the scopes.
        """
        if not name.strip() or len(name) > _NAME or clean(name) != name:
            raise invalid("name", f"a name of 1 to {_NAME} characters", name)
        wrong = sorted(set(scopes) - set(SCOPES))
        if wrong or not scopes:
            raise invalid("scopes", "one or more of " + ", ".join(SCOPES), ", ".join(wrong) or "none")
        _check_binding(scopes, clusters, teams)
        if self.has(name):
            raise _taken(name)
        secret = PREFIX + secrets.token_urlsafe(32)
        made = insert(tokens).values(
            name=name,
            sha256=hashed(secret),
            scopes=",".join(scope for scope in SCOPES if scope in scopes),
            created_at=self._clock.now(),
            clusters=_names(clusters),
            teams=_names(teams),
            expires_at=None if expires_at is None else utc(expires_at),
        )
        try:
            row = self._connection.execute(made.returning(tokens)).one()
        except IntegrityError:  # created by another transaction since the check
            raise _taken(name) from None
        return _token(row), secret

    def used(self, token: Token) -> None:
        """Record that the token was used now."""
        self._connection.execute(update(tokens).where(tokens.c.id == token.id).values(last_used_at=self._clock.now()))

    def revoke(self, name: str) -> None:
        """Revoke the token of this name.

        Raises:
            NotFound: no unrevoked token has this name.
        """
        row = self._by_name(name)
        if row is None:
            raise NotFound(f'no token named "{name}" that is not revoked already')
        self._connection.execute(update(tokens).where(tokens.c.id == row.id).values(revoked_at=self._clock.now()))


def hashed(secret: str) -> str:
    """The hash of a random secret that is stored."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _taken(name: str) -> Conflict:
    return Conflict(f'a token named "{name}" exists: revoke it first, or choose another name')


def _check_binding(scopes: Collection[str], clusters: Collection[str], teams: Collection[str]) -> None:
    """Check that the clusters and teams of a new token fit its scopes.

    Raises:
        InvalidInput: an empty name, or a scope that can't be bound in this way.
    """
    for field, names in (("clusters", clusters), ("teams", teams)):
        if any(not one.strip() or len(one) > _NAME or clean(one) != one for one in names):
            raise invalid(field, f"names of 1 to {_NAME} characters", ", ".join(names))
    if "hook" in scopes and (len(set(clusters)) != 1 or teams):
        raise invalid("clusters", "one cluster and no team for the purpose hook", ", ".join(clusters) or "none")
    if (clusters or teams) and {"admin", "publish"} & set(scopes):
        raise invalid("scopes", "no admin or publish for a token of some clusters or teams", ", ".join(sorted(scopes)))


def _names(names: Collection[str]) -> str | None:
    return orjson.dumps(sorted(set(names))).decode() if names else None


@damage_translated()
def _token(row: Row[Any]) -> Token:
    scopes: builtins.list[str] = row.scopes.split(",")
    # A binding that can't be read is an error: without one, the token would be for everything.
    clusters, teams = (() if names is None else names_read(names) for names in (row.clusters, row.teams))
    return Token(
        row.id,
        row.name,
        frozenset(scopes),
        row.created_at,
        row.revoked_at,
        row.last_used_at,
        clusters,
        teams,
        row.expires_at,
    )
