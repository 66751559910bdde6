"""Schema revisions: upgrade a database, or check that it is current. The steps are in `migrations/`.

Every command checks the revision. Alembic, which takes longer to import than most commands run, is imported for
upgrades only: names of revisions are read from the names of their files.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

import migrations
from service.db.engine import create_file, errors_translated
from service.errors import ConfigurationError

if TYPE_CHECKING:
    from alembic.config import Config

# Concurrent upgrades run one after the other (PostgreSQL; on SQLite the write lock does the same).
_UPGRADE_LOCK = 0x6661756C74  # "fault"
# A migration that waits for a lock behind a long reader would block all later queries: it must time out.
_LOCK_TIMEOUT = "5s"
_STATEMENT_TIMEOUT = "15min"
_FOLDER = Path(migrations.__file__).parent
_REVISION_FILE = re.compile(r"(\d{4})_\w+\.py")
# The tables of words (FTS5, SQLite) and the partitions of logs (PostgreSQL), which `metadata` does not declare.
_OF_ONE_DATABASE = ("evidence_words", "log_bodies_")


def config(connection: Connection | None = None) -> "Config":
    """Alembic's configuration for the migrations as installed; migrations run on `connection`."""
    from alembic.config import Config  # noqa: PLC0415 - slow to import; only an upgrade needs it

    made = Config()
    made.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    made.set_main_option("path_separator", "os")
    made.set_main_option("recursive_version_locations", "true")
    made.attributes["connection"] = connection
    return made


@cache
def revisions() -> Sequence[str]:
    """All revisions, the oldest first: the numbers with which the names of their files begin."""
    found = map(_REVISION_FILE.fullmatch, (path.name for path in (_FOLDER / "versions").rglob("*.py")))
    return sorted(match[1] for match in found if match is not None)


def head() -> str:
    """The revision this version was written for.

    Raises:
        ConfigurationError: the installation has none.
    """
    if not revisions():
        raise ConfigurationError("the installation has no migrations: install it again")
    return revisions()[-1]


def is_of_one_database(name: str | None, kind: str) -> bool:
    """Whether something in a database is a table that only SQLite or only PostgreSQL has; for Alembic's comparison."""
    return kind == "table" and name is not None and name.startswith(_OF_ONE_DATABASE)


def current(connection: Connection) -> str | None:
    """The revision of a database; None if it has none.

    Raises:
        ConfigurationError: it has several, which no version of this program writes.
    """
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version ORDER BY version_num")).scalars().all()
    if len(found) > 1:
        raise ConfigurationError(
            f"the database has several revisions ({', '.join(map(str, found[:4]))}), of which alembic_version may hold"
            " one: restore a backup, or delete those that were added"
        )
    return str(found[0]) if found else None


def upgrade(engine: Engine, revision: str = "head") -> tuple[str | None, str | None]:
    """Create the file (SQLite) and upgrade the schema to `revision`, atomically.

    Returns:
        The revision before and after.

    Raises:
        Unavailable: no answer, or a lock was not acquired in time; nothing was changed.
        ConfigurationError: the file cannot be created, the database is newer than this version, or its revision is
            lost.
    """
    from alembic import command  # noqa: PLC0415 - slow to import; only an upgrade needs it

    create_file(engine)
    with errors_translated(engine), _with_timeouts(engine) as connection:
        before = current(connection)
        _refuse_newer(before)
        if before is None and inspect(connection).has_table("failures"):
            raise ConfigurationError(
                "the database has tables of this service, and alembic_version has no revision of them: restore a whole"
                " backup, or write the revision there"
            )
        logging.getLogger("alembic").setLevel(logging.WARNING)
        command.upgrade(config(connection), revision)
        return before, current(connection)


def check(engine: Engine) -> None:
    """Check that the schema has the revision of this version.

    Raises:
        ConfigurationError: it has another revision; the message names it and the command to run.
        Unavailable: the database does not answer.
    """
    with errors_translated(engine), engine.connect() as connection:
        have, want = current(connection), head()
    _refuse_newer(have)
    if have != want:
        there = "has no schema yet" if have is None else f"is at revision {have}"
        raise ConfigurationError(f"the database {there}, this version needs {want}: run `faultline db upgrade`")


def _refuse_newer(revision: str | None) -> None:
    if revision is not None and revision not in revisions():
        raise ConfigurationError(
            f"the database is at revision {revision}, which this version does not know: it was upgraded by a newer "
            "version; install that one"
        )


@contextmanager
def _with_timeouts(engine: Engine) -> Iterator[Connection]:
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'"))
            connection.execute(text(f"SET LOCAL statement_timeout = '{_STATEMENT_TIMEOUT}'"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
        yield connection
