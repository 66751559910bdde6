"""Limits of logins and of other actions, counted in the database for all processes.

An attempt to log in counts from its start until it succeeds. Successful ones have a limit of their own: each takes as
much of the processor, and adds to the audit log.

Nobody can lock everybody out: a person who logged in from an address before is only limited by attempts for this name
from this address, so neither guesses from elsewhere nor other people behind the same address keep the person out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from ipaddress import ip_address

from service.db.session import Store, UnitOfWork
from service.errors import TooManyRequests
from service.people import passwords
from service.people.repository.login_attempts import LoginAttemptReader

RETRY_AFTER_S = 300
IPV6_NETWORK = 64  # bits; a client usually has all addresses of such a network


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `times` attempts of one kind in a period; each is counted for `lasts`."""

    times: int
    lasts: timedelta = timedelta(minutes=5)


BY_ADDRESS = Limit(20)
BY_NAME_AND_ADDRESS = Limit(10)
BY_NAME = Limit(30)
SUCCESSES = Limit(30)  # of a name from an address
# Wrong one-time codes after the right password, in a day: three of a million codes are right at any time, so that
# guesses of a year would find one with a probability of 2 %.
CODES = Limit(20, timedelta(days=1))

_Counted = tuple[Limit, str]


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """A started attempt, to be passed to `finish`: what it counts for, and its rows meanwhile."""

    limits: tuple[_Counted, ...]
    rows: tuple[int, ...]
    known_as: tuple[str, str]


class LoginAttempts:
    """Failed logins of the last five minutes, and running ones, of all processes that share a database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def start(self, address: str, name: str) -> LoginAttempt | None:
        """Count an attempt; None if a limit is reached. To be called before a password is hashed.

        Raises:
            Unavailable: the database does not answer, or too many passwords are being checked.
        """
        if name:  # a flood of guesses writes no more than can be checked
            passwords.check_room()
        network, folded = network_of(address), name.casefold()[:200]
        with self._store.reading() as reading:  # what is refused writes nothing
            if _exceeded(reading.login_attempts, _limits(reading.login_attempts, network, folded)):
                return None
        with self._store.unit_of_work() as work:
            work.login_attempts.lock()
            found = _limits(work.login_attempts, network, folded)
            if _exceeded(work.login_attempts, found):
                return None
            # An attempt whose process ends has failed, and is forgotten as soon as any other failed one.
            rows = work.login_attempts.add([key for _, key in found], BY_NAME.lasts)
            return LoginAttempt(found, tuple(rows), (_key("known", folded) if folded else "", _key(network)))

    def finish(self, attempt: LoginAttempt, *, succeeded: bool | None, wrong_code: bool = False) -> None:
        """Count the attempt as failed, or forget it.

        Args:
            attempt: the attempt.
            succeeded: None if the password could not be checked, which says nothing.
            wrong_code: the password was right, and the one-time code was not.

        Raises:
            Unavailable: the database does not answer; the attempt has failed.
        """
        with self._store.unit_of_work() as work:
            work.login_attempts.remove(attempt.rows)
            for limit, key in attempt.limits:
                if wrong_code if limit is CODES else succeeded is (limit is SUCCESSES):
                    work.login_attempts.add([key], limit.lasts)
            if succeeded and attempt.known_as[0]:
                _remember(work, *attempt.known_as)


def _remember(work: UnitOfWork, name: str, network: str) -> None:
    work.login_attempts.lock()
    work.login_attempts.remember(name, network)


def _exceeded(attempts: LoginAttemptReader, limits: Sequence[_Counted]) -> bool:
    counts = attempts.counts([key for _, key in limits])
    return any(counts[key] >= limit.times for limit, key in limits)


def _limits(attempts: LoginAttemptReader, network: str, name: str) -> tuple[_Counted, ...]:
    by_address = (BY_ADDRESS, _key("address", network))
    if not name:  # a token login has no name: guessing tokens must not lock out other token users
        return (by_address,)
    own = (
        (BY_NAME_AND_ADDRESS, _key("both", name, network)),
        (SUCCESSES, _key("succeeded", name, network)),
    )
    if attempts.is_known(_key("known", name), _key(network)):
        return (*own, (CODES, _key("codes", name, network)))
    return (by_address, *own, (BY_NAME, _key("name", name)), (CODES, _key("codes", name)))


def _key(*parts: str) -> str:
    """What is counted under one name, of one length. Names that were tried may be passwords: they are not stored."""
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class SharedLimit:
    """How often somebody may do the same, counted in the database for all processes that share it.

    Attributes:
        name: what is limited; no two limits count together.
        times: how often.
        lasts: how long each time counts.
    """

    name: str
    times: int
    lasts: timedelta

    def count(self, work: UnitOfWork, key: str, what: str) -> None:
        """Count once, in the transaction of what is done: what fails with it is not counted.

        Args:
            work: the transaction; no other process counts until it ends.
            key: by whom or what is counted.
            what: what there are too many of, for the message.

        Raises:
            TooManyRequests: the limit is reached.
        """
        counted = _key("action", self.name, key)
        work.login_attempts.lock()
        if work.login_attempts.counts([counted])[counted] >= self.times:
            raise TooManyRequests(f"too many {what}: try again later", work.login_attempts.wait_s(counted))
        work.login_attempts.add([counted], self.lasts)


def network_of(address: str) -> str:
    """The part of an address that one client has for itself."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:  # noqa: PLR2004 - the version of IP
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(int(found) >> (128 - IPV6_NETWORK))
