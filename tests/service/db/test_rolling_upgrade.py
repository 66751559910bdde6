"""Version 0.1.0 works on until it is restarted: the upgraded schema takes every row that it writes."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, MetaData, Table, select

from service.db.engine import connect
from service.db.session import Store
from tests.labs.postgres import Postgres
from tests.service.databases import engine_of
from tests.service.db import released

pytestmark = pytest.mark.slow


@pytest.fixture
def old(dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A database as version 0.1.0 left it."""
    if dialect == "sqlite":
        with closing(Store(released.write_sqlite(tmp_path / "released.sqlite3"))) as store:
            yield store
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = released.write_postgres(server, "released_rolling", lambda url: connect(url, pool_size=1), tmp_path)
    with closing(Store(url)) as store:
        yield store
    server.drop("released_rolling")


def tables_of(connection: Connection) -> list[Table]:
    found = MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if not table.name.startswith(("alembic_version", released.WORDS))]


def test_the_new_schema_takes_and_gives_each_row_of_the_old_version(old: Store) -> None:
    with engine_of(old).connect() as connection:
        tables = tables_of(connection)
        rows: dict[str, list[Any]] = {one.name: list(connection.execute(select(one)).mappings()) for one in tables}
    old.upgrade()
    # Deleted and written again with the statements of the old version: its columns, in its types.
    with engine_of(old).begin() as connection:
        for table in reversed(tables_of(connection)):
            connection.execute(table.delete())
        for table in tables:
            if rows[table.name]:
                connection.execute(table.insert(), [dict(one) for one in rows[table.name]])
        for table in tables:
            assert len(list(connection.execute(select(table)))) == len(rows[table.name]), table.name
    assert sum(map(bool, rows.values())) > 30
    old.check()
