"""Passwords of local accounts: Argon2id by argon2-cffi's own defaults (RFC 9106, low memory)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from service.errors import FieldError, InvalidInput, Unavailable

SHORTEST, LONGEST = 12, 200  # characters
# Of zxcvbn: 3 is "safely unguessable", more than 10^8 guesses (Wheeler, USENIX Security 2016).
LEAST_STRENGTH = 3
# Characters that are rated. The time grows with their number: 72 signs that stand for letters took 2 s, 32 take 0.4 s.
_RATED = 32
HASHES = 3  # at once: each needs 64 MiB and a processor for a moment
WAITING = 12  # further requests that wait for one
_running = threading.BoundedSemaphore(HASHES)
_admitted = threading.BoundedSemaphore(HASHES + WAITING)


@cache
def _hasher() -> PasswordHasher:
    return PasswordHasher()


@cache
def _dummy_hash() -> str:
    """The hash that unknown names are verified against, so that the response time does not reveal accounts."""
    return _hasher().hash("no account has this password")


def hash_password(password: str, *names: str) -> str:
    """The hash to store; `names` are words of the account, which make a bad password.

    Raises:
        InvalidInput: too short, too long or easy to guess; the message never contains the password.
        Unavailable: too many passwords are being checked.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise _refused(f"{SHORTEST} to {LONGEST} characters")
    with _one_of_few():
        if _strength(password, names) < LEAST_STRENGTH:
            raise _refused("a password that is harder to guess, such as five random words")
        return _hasher().hash(password)


def verify(stored: str | None, password: str) -> bool:
    """Whether a password matches the stored hash; takes the same time if there is no account.

    Raises:
        Unavailable: too many passwords are being checked.
    """
    with _one_of_few():
        try:
            found = _hasher().verify(stored or _dummy_hash(), password[: LONGEST + 1])
        except (VerificationError, InvalidHashError):
            return False
    return found and stored is not None


def check_room() -> None:
    """Return if a password can be checked now: what would be refused then need not be counted before.

    Raises:
        Unavailable: too many passwords are being checked.
    """
    if not _admitted.acquire(blocking=False):
        raise _too_many()
    _admitted.release()


def _too_many() -> Unavailable:
    return Unavailable("too many passwords are being checked at once: try again in a few seconds")


@contextmanager
def _one_of_few() -> Iterator[None]:
    """Wait for one of the few hashes that run at once."""
    if not _admitted.acquire(blocking=False):
        raise _too_many()
    try:
        with _running:
            yield
    finally:
        _admitted.release()


def _strength(password: str, names: tuple[str, ...]) -> int:
    """How hard a password is to guess, from 0 to 4."""
    from zxcvbn import zxcvbn  # noqa: PLC0415 -- reads large word lists

    score: int = zxcvbn(password[:_RATED], user_inputs=["faultline", *names])["score"]
    return score


def _refused(expected: str) -> InvalidInput:
    return InvalidInput(f"password: expected {expected}", (FieldError("password", expected),))
