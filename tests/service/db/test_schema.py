import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from service.db import schema
from service.db.all_tables import metadata
from service.db.schema import head
from service.db.session import Store
from service.errors import ConfigurationError, Unavailable
from tests.labs.postgres import Postgres
from tests.service.databases import engine_of
from tests.service.sample_rows import job, put

CHECKOUT = Path(__file__).parents[3]


def test_an_upgrade_creates_the_schema_and_a_second_one_changes_nothing(empty_url: str) -> None:
    with closing(Store(empty_url)) as store:
        with pytest.raises(ConfigurationError, match="faultline db upgrade"):
            store.check()
        assert store.upgrade() == (None, head())
        store.check()
        assert store.upgrade() == (head(), head())


def test_the_newest_migration_can_be_undone_and_done_again(store: Store) -> None:
    put(store, [job("1")])
    with engine_of(store).begin() as connection:
        command.downgrade(schema.config(connection), "-1")
        assert schema.current(connection) == schema.revisions()[-2]
    assert store.upgrade() == (schema.revisions()[-2], head())
    test_migrations_create_the_declared_schema(store)
    with store.reading() as reading:
        assert len(reading.jobs.attempts("orion", "1")) == 1


def test_migrations_create_the_declared_schema(store: Store) -> None:
    with engine_of(store).connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "compare_server_default": True,
                "target_metadata": metadata,
                "include_name": lambda name, kind, _parent: not schema.is_of_one_database(name, kind),
            },
        )
        assert compare_metadata(context, metadata) == []


def test_names_of_files_give_the_revisions_in_order() -> None:
    scripts = ScriptDirectory.from_config(schema.config()).walk_revisions()
    assert [script.revision for script in scripts] == [*reversed(schema.revisions())]


@pytest.mark.slow
def test_a_new_migration_has_the_next_number_and_contains_what_the_tables_changed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/developer.sqlite3"
    with closing(Store(url)) as store:
        store.upgrade()
        with engine_of(store).begin() as connection:
            connection.execute(text("DROP INDEX ix_mended_at"))  # as if the code had declared it since
    folder = shutil.copytree(CHECKOUT / "migrations", tmp_path / "migrations")
    arguments = [
        "-m",
        "alembic",
        "-c",
        str(folder / "alembic.ini"),
        "revision",
        "--autogenerate",
        "-m",
        "Fixes by time",
    ]
    environ = {**os.environ, "FAULTLINE_DATABASE_URL": url, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run([sys.executable, *arguments], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    number = f"{int(head()) + 1:04}"
    written = folder / "versions" / "from_0025" / f"{number}_fixes_by_time.py"
    found = written.read_text(encoding="utf-8")
    assert re.findall(r"^(?:down_)?revision = '(\w+)'", found, re.MULTILINE) == [number, head()]
    upgrade, downgrade = found.split("def downgrade()")
    assert re.findall(r"\b\w*op\.((?:create|drop)_\w+)\('(\w+)'", upgrade) == [("create_index", "ix_mended_at")]
    assert re.findall(r"\b\w*op\.((?:create|drop)_\w+)\('(\w+)'", downgrade) == [("drop_index", "ix_mended_at")]


def test_every_constraint_has_a_name() -> None:
    for table in metadata.tables.values():
        for constraint in table.constraints:
            assert constraint.name, f"{table.name}: {constraint}"


def test_a_newer_database_is_refused(empty_url: str) -> None:
    with closing(Store(empty_url)) as store:
        store.upgrade()
        with engine_of(store).begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = 'f00'"))
        for act in (store.check, store.upgrade):
            with pytest.raises(ConfigurationError, match=r"f00.*newer version"):
                act()


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("INSERT INTO alembic_version VALUES ('0026')", "several revisions"),
        ("DELETE FROM alembic_version", "no revision of them"),
        ("DROP TABLE alembic_version", "no revision of them"),
    ],
)
def test_a_database_whose_revision_is_lost_is_not_upgraded(empty_url: str, statement: str, reason: str) -> None:
    """Alembic began from any of several, or from the first: it ended with a traceback in the middle."""
    with closing(Store(empty_url)) as store:
        store.upgrade()
        with engine_of(store).begin() as connection:
            connection.execute(text(statement))
        with pytest.raises(ConfigurationError, match=reason):
            store.upgrade()
        with pytest.raises(ConfigurationError, match=r"several revisions|no schema yet"):
            store.check()


def test_a_missing_schema_is_reported_by_any_use(empty_url: str) -> None:
    with closing(Store(empty_url)) as store:
        if store.dialect == "sqlite":
            Path(engine_of(store).url.database or "").touch()
        with pytest.raises(ConfigurationError, match="faultline db upgrade"), store.reading() as reading:
            reading.jobs.known(["a"])


@pytest.mark.lab
def test_an_upgrade_that_cannot_get_its_lock_gives_up_and_changes_nothing(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.db.schema._LOCK_TIMEOUT", "200ms")
    name = "locked_out"
    try:
        with closing(Store(postgres.create(name))) as store, engine_of(store).connect() as other:
            other.execute(text("SELECT pg_advisory_lock(:key)"), {"key": 0x6661756C74})
            with pytest.raises(Unavailable):
                store.upgrade()
            assert postgres.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", name) == "0"
    finally:
        postgres.drop(name)


def then_fail(act: Callable[..., None]) -> Callable[..., None]:
    def acted(*arguments: Any) -> None:
        act(*arguments)
        raise ArithmeticError

    return acted


def test_a_failed_migration_leaves_nothing(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Store(empty_url)) as store:
        monkeypatch.setattr("alembic.command.upgrade", then_fail(command.upgrade))
        with pytest.raises(ArithmeticError):
            store.upgrade()
        monkeypatch.undo()
        with pytest.raises(ConfigurationError, match="has no schema yet"):
            store.check()


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "private.sqlite3"
    with closing(Store(f"sqlite:///{path}")) as store:
        store.upgrade()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_created_is_named_in_the_error(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/no/such/folder.sqlite3"
    with closing(Store(url)) as store, pytest.raises(ConfigurationError, match=r"folder\.sqlite3"):
        store.upgrade()
