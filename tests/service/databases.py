"""Migrated databases for tests: a SQLite file to copy, and a PostgreSQL database that is emptied after each test."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from service.db.all_tables import metadata
from service.db.session import Store
from tests.labs.postgres import Postgres

MIGRATED = "migrated"
_RESTART_SEQUENCES = "SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S'"


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


def empty_migrated(server: Postgres) -> None:
    """Delete all rows and restart all ids at 1, as in a new database: no test depends on the tests before it."""
    deletes = "; ".join(f"DELETE FROM {table}" for table in metadata.tables)
    server.sql(f"{deletes}; {_RESTART_SEQUENCES}", MIGRATED)


def _migrate(url: str) -> None:
    store = Store(url)
    store.upgrade()
    store.close()
