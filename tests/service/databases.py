"""Migrated databases for tests: a SQLite file to copy, and a PostgreSQL database that is emptied after each test."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine

from service.db.all_tables import metadata
from service.db.session import Store
from tests.labs.postgres import Postgres

MIGRATED = "migrated"
_RESTART_SEQUENCES = "SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S'"


def engine_of(store: Store) -> Engine:
    """The engine of a store, for statements that the program itself has no use for."""
    return store._engine


def connection_of(repository: Any) -> Connection:
    """The connection of a repository, for statements inside its session."""
    found: Connection = repository._connection
    return found


def everything_stored(store: Store) -> bytes:
    """All that a database holds, each byte as it is: the files of SQLite, or the rows of PostgreSQL."""
    engine = engine_of(store)
    if engine.dialect.name == "sqlite":
        file = Path(str(engine.url.database))
        return b"".join(one.read_bytes() for one in file.parent.glob(f"{file.name}*"))
    with engine.connect() as connection:
        connection.exec_driver_sql("SET bytea_output = 'escape'")
        rows = [row for name in metadata.tables for row in connection.exec_driver_sql(f"SELECT t::text FROM {name} t")]
    return "\n".join(text for (text,) in rows).encode()


@cache
def migrated_file() -> Path:
    """A migrated SQLite database, created once per run; each test uses a copy."""
    folder = Path(tempfile.mkdtemp(prefix="faultline-migrated-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _migrate(f"sqlite:///{folder}/store.sqlite3")
    return folder / "store.sqlite3"


def copy_migrated(path: Path) -> str:
    """Write a migrated SQLite database to `path`; return its URL. A copy costs nothing, migrations 0.3 s."""
    shutil.copy(migrated_file(), path)
    return f"sqlite:///{path}"


def create_migrated(server: Postgres) -> None:
    """Create the migrated PostgreSQL database."""
    _migrate(server.create(MIGRATED))


class Emptier:
    """Empties the migrated PostgreSQL database after each test.

    Over one connection, whose session knows all tables: a new session takes ten times as long for this.
    """

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None

    def __call__(self) -> None:
        """Delete all rows and restart all ids at 1, as in a new database: no test depends on the tests before it."""
        deletes = "; ".join(f"DELETE FROM {table}" for table in metadata.tables)
        statement = f"{deletes}; {_RESTART_SEQUENCES}".encode()
        try:
            self._connected().execute(statement)
        except psycopg.OperationalError:  # a test has ended the sessions, or the server
            self.close()
            self._connected().execute(statement)

    def _connected(self) -> "psycopg.Connection[tuple[object, ...]]":
        if self._connection is None:
            self._connection = psycopg.connect(self._server.url(MIGRATED), autocommit=True, prepare_threshold=None)
        return self._connection

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _migrate(url: str) -> None:
    store = Store(url)
    store.upgrade()
    store.close()
