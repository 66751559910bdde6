"""API tokens: only the SHA-256 of the secret is stored."""

from collections.abc import Collection

from service.store.records import Token


class Tokens:
    """The tokens."""

    def create(self, name: str, scopes: Collection[str]) -> tuple[Token, str]:
        """A new token and its secret, which is shown this once.

        Raises:
            Conflict: an unrevoked token has this name.
            InvalidInput: an unknown scope, or none; a name that is empty or over 200 characters.
        """
        raise NotImplementedError

    def find(self, secret: str) -> Token | None:
        """The unrevoked token with this secret."""
        raise NotImplementedError

    def used(self, token: Token) -> None:
        """Remember that it was used now (needs a unit of work)."""
        raise NotImplementedError

    def list(self) -> tuple[Token, ...]:
        """All of them, revoked ones too, oldest first."""
        raise NotImplementedError

    def revoke(self, name: str) -> None:
        """Make it worthless from now on.

        Raises:
            NotFound: no unrevoked token has this name.
        """
        raise NotImplementedError

    def any(self) -> bool:
        """Whether an unrevoked token exists."""
        raise NotImplementedError
