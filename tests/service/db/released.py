"""A database that version 0.1.0 wrote, with rows in nearly every table.

It has failures of three sides on two clusters, jobs that succeeded, requests, incidents, groups, feedback, node events,
dead letters, deliveries, a report, accounts and tokens. The file is a compressed SQL dump of SQLite. For PostgreSQL its
rows are copied into a schema of the same revision.
"""

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import zstandard
from sqlalchemy import Boolean, Connection, DateTime, Engine, MetaData, Table, text

from service.db import schema
from service.failures.repository import search
from tests.labs.postgres import Postgres

DUMP = Path(__file__).parents[2] / "data" / "database_0.1.0.sql.zst"
REVISION = "0010"
WORDS = "evidence_words"  # not the same table in both databases


def write_sqlite(path: Path) -> str:
    """Write the database to a new file; its URL."""
    path.touch(mode=0o600)
    with sqlite3.connect(path) as connection:
        connection.executescript(zstandard.ZstdDecompressor().decompress(DUMP.read_bytes()).decode())
    connection.close()
    return f"sqlite:///{path}"


def write_postgres(server: Postgres, name: str, engine_of: Callable[[str], Engine], folder: Path) -> str:
    """Write the database to a new one of a PostgreSQL server; its URL."""
    url = server.create(name)
    write_sqlite(folder / "dump.sqlite3")
    source = sqlite3.connect(folder / "dump.sqlite3")
    source.row_factory = sqlite3.Row
    engine = engine_of(url)
    schema.upgrade(engine, REVISION)
    tables = MetaData()
    with engine.begin() as target:
        tables.reflect(target)
        for table in tables.sorted_tables:
            if table.name not in {WORDS, "alembic_version"}:
                _copy(source, target, table)
        words = source.execute(f"SELECT rowid, words FROM {WORDS}").fetchall()
        search.add(target, [tuple(row) for row in words])
        last = source.execute("SELECT value FROM counters WHERE name = 'job_ids'").fetchone()[0]
        target.execute(text("SELECT setval('job_ids', :last)"), {"last": last})
    source.close()
    engine.dispose()
    return url


def rows_by_table(connection: Connection) -> dict[str, int]:
    """How many rows each table of version 0.1.0 has."""
    tables = MetaData()
    tables.reflect(connection)
    return {
        name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()
        for name in sorted(tables.tables)
        if name != "alembic_version" and not name.startswith(WORDS)
    }


def _copy(source: sqlite3.Connection, target: Connection, table: Table) -> None:
    rows = source.execute(f"SELECT * FROM {table.name}").fetchall()
    if rows:
        target.execute(table.insert(), [{key: _value(table, key, row[key]) for key in row.keys()} for row in rows])  # noqa: SIM118 - a sqlite3.Row
    if "id" in table.c and table.c["id"].server_default is not None and rows:
        target.execute(
            text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), (SELECT max(id) FROM {table.name}))")
        )


def _value(table: Table, column: str, value: Any) -> Any:
    """A value as PostgreSQL takes it: SQLite stores times as text in UTC and truth values as numbers."""
    kind = table.c[column].type
    if value is None:
        return None
    if isinstance(kind, DateTime):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    return bool(value) if isinstance(kind, Boolean) else value
