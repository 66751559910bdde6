"""Accounts: identity, role, users and teams of people."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

import orjson
from sqlalchemy import Row, delete, or_, select, update

from service.errors import Conflict, DamagedData, NotFound, damage_translated, invalid
from service.people.tables import accounts, sessions
from service.sql import bulk
from service.sql.reader import TimedReader
from service.sql.types import clean, names_read, utc

Role = Literal["viewer", "owner", "operator", "admin"]
AccountSource = Literal["local", "oidc", "proxy"]
ROLES: tuple[str, ...] = get_args(Role)
_ANY = select(accounts.c.id).where(accounts.c.disabled_at.is_(None)).limit(1)
_NAME = 200  # characters


@dataclass(frozen=True, slots=True)
class Account:
    """A person. `users`: the names under which their jobs run, "user" anywhere or "cluster/user" on one cluster.

    `teams`: the only teams that a viewer or operator sees, and further jobs that an owner sees; empty for a viewer or
    operator: everything. `identity`: `iss` and `sub` of a person of an identity provider.
    """

    id: int
    name: str
    source: AccountSource
    role: Role
    users: tuple[str, ...]
    teams: tuple[str, ...]
    created_at: datetime
    disabled_at: datetime | None = None
    last_login_at: datetime | None = None
    identity: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a local account logs in with: an Argon2 hash, and the key of one-time codes if it has a second factor."""

    account_id: int
    password: str | None
    totp_secret: str | None


class AccountReader(TimedReader):
    """Reads accounts."""

    def named(self, name: str) -> Account:
        """The account of this name, including disabled ones.

        Raises:
            NotFound: there is none.
        """
        row = self._connection.execute(select(accounts).where(accounts.c.name == clean(name))).first()
        if row is None:
            raise NotFound(f'no account named "{name[:80]}"')
        return account_of_row(row)

    def of_identity(self, issuer: str, external_id: str) -> Account | None:
        """The account of a person of an identity provider, including disabled ones."""
        row = self._connection.execute(
            select(accounts).where(accounts.c.issuer == clean(issuer), accounts.c.external_id == clean(external_id))
        ).first()
        return None if row is None else account_of_row(row)

    def credentials(self, name: str) -> Credentials | None:
        """The credentials of an enabled local account; None if there is none."""
        row = self._connection.execute(
            select(accounts.c.id, accounts.c.password, accounts.c.totp_secret).where(
                accounts.c.name == clean(name), accounts.c.source == "local", accounts.c.disabled_at.is_(None)
            )
        ).first()
        return None if row is None else Credentials(row.id, row.password, row.totp_secret)

    def list(self) -> tuple[Account, ...]:
        """All accounts, by name."""
        return tuple(
            account_of_row(row) for row in self._connection.execute(select(accounts).order_by(accounts.c.name))
        )

    def any_local(self) -> bool:
        """Whether an account has a password here, or had one."""
        wanted = select(accounts.c.id).where(accounts.c.source == "local").limit(1)
        return self._connection.execute(wanted).first() is not None

    def any(self) -> bool:
        """Whether an enabled account exists."""
        return self._connection.execute(_ANY).first() is not None


class AccountRepository(AccountReader):
    """Reads and writes accounts."""

    def create(
        self,
        name: str,
        role: str,
        *,
        password: str | None = None,
        source: AccountSource = "local",
        users: Collection[str] = (),
        teams: Collection[str] = (),
        identity: tuple[str, str] | None = None,
    ) -> Account:
        """A new account; `password` is an Argon2 hash, `identity` the claims `iss` and `sub`.

        Raises:
            Conflict: the name is taken.
            InvalidInput: a name that is empty, over 200 characters or has spaces around it, an unknown role, an owner
                without a user.
        """
        # Pages show several spaces as one, and none at the ends: such a name would look like that of somebody else.
        spaced = name != " ".join(name.split())
        if not name or spaced or len(name) > _NAME or clean(name) != name or not name.isprintable():
            raise invalid("name", f"1 to {_NAME} printable characters, with single spaces between words only", name)
        if role not in ROLES:
            raise invalid("role", "one of " + ", ".join(ROLES), role)
        if role == "owner" and not users and not teams:
            raise invalid("users", "at least one user or team whose jobs an owner sees", "none")
        added = bulk.insert_new(
            self._connection,
            accounts,
            {
                "name": name,
                "source": source,
                "role": role,
                "password": password,
                "users": orjson.dumps(sorted(users)).decode(),
                "teams": orjson.dumps(sorted(teams)).decode(),
                "created_at": utc(self._clock.now()),
                "issuer": None if identity is None else clean(identity[0]),
                "external_id": None if identity is None else clean(identity[1]),
            },
        )
        if not added:
            raise Conflict(f'an account named "{name}" exists')
        return self.named(name)

    def change(self, name: str, **values: Any) -> Account:
        """Change `role`, `users`, `teams`, `password` or `totp_secret`; all sessions of the account end.

        Raises:
            NotFound: no such account.
            InvalidInput: an unknown role.
        """
        found = self.named(name)
        if values.get("role", found.role) not in ROLES:
            raise invalid("role", "one of " + ", ".join(ROLES), str(values["role"]))
        stored = {
            key: orjson.dumps(sorted(value)).decode() if key in {"users", "teams"} else value
            for key, value in values.items()
        }
        if stored:
            self._connection.execute(update(accounts).where(accounts.c.id == found.id).values(**stored))
        self._connection.execute(delete(sessions).where(sessions.c.account_id == found.id))
        return self.named(name)

    def replace_password(self, account_id: int, old: str, new: str) -> bool:
        """Replace the hash of a password; False if it is no longer the old one. The sessions stay."""
        changed = update(accounts).where(accounts.c.id == account_id, accounts.c.password == old).values(password=new)
        return self._connection.execute(changed).rowcount == 1

    def confirm(self, known: Credentials) -> bool:
        """Whether credentials that were checked are still those of an enabled account, until the transaction ends.

        What changes them, and ends the sessions of the account, then waits for the new session, and ends it too.
        """
        same = (
            accounts.c.id == known.account_id,
            accounts.c.disabled_at.is_(None),
            accounts.c.password.is_not_distinct_from(known.password),
            accounts.c.totp_secret.is_not_distinct_from(known.totp_secret),
        )
        locked = update(accounts).where(*same).values(last_login_at=utc(self._clock.now()))
        return self._connection.execute(locked).rowcount == 1

    def disable(self, name: str) -> None:
        """Disable the account and end its sessions.

        Raises:
            NotFound: no such account.
        """
        self.change(name, disabled_at=utc(self._clock.now()))

    def use_code(self, account_id: int, step: int) -> bool:
        """Accept a one-time code of a time step; False if a code of this step or a later one was accepted before."""
        unused = or_(accounts.c.totp_step.is_(None), accounts.c.totp_step < step)
        changed = update(accounts).where(accounts.c.id == account_id, unused).values(totp_step=step)
        return self._connection.execute(changed).rowcount == 1


@damage_translated()
def account_of_row(row: Row[Any]) -> Account:
    """The account of a row of the table.

    Raises:
        DamagedData: its role, users or teams can't be read, so that nobody knows what it may see.
    """
    users, teams = names_read(row.users), names_read(row.teams)
    if row.role not in ROLES:
        raise DamagedData(f"account {row.id} has a role that does not exist")
    return Account(
        row.id,
        row.name,
        row.source,
        row.role,
        users,
        teams,
        row.created_at,
        row.disabled_at,
        row.last_login_at,
        None if row.issuer is None else (row.issuer, row.external_id),
    )
