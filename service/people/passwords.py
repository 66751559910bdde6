"""Passwords of local accounts: Argon2id by argon2-cffi's own defaults (RFC 9106, low memory)."""

from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from service.errors import FieldError, InvalidInput

SHORTEST, LONGEST = 12, 200  # characters


@cache
def _hasher() -> PasswordHasher:
    return PasswordHasher()


@cache
def _dummy_hash() -> str:
    """The hash that unknown names are verified against, so that the response time does not reveal accounts."""
    return _hasher().hash("no account has this password")


def hash_password(password: str) -> str:
    """The hash to store.

    Raises:
        InvalidInput: too short or too long; the message never contains the password.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        expected = f"{SHORTEST} to {LONGEST} characters"
        raise InvalidInput(f"password: expected {expected}", (FieldError("password", expected),))
    return _hasher().hash(password)


def verify(stored: str | None, password: str) -> bool:
    """Whether a password matches the stored hash; takes the same time if there is no account."""
    try:
        found = _hasher().verify(stored or _dummy_hash(), password[: LONGEST + 1])
    except (VerificationError, InvalidHashError):
        return False
    return found and stored is not None
