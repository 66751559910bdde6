"""A migrated store on each of the two databases, new for every test, and a service with it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.db.all_tables import metadata
from service.db.session import Store
from tests.labs.postgres import Postgres, server
from tests.service.automation.world import World, blank, world
from tests.service.frozen_clock import FrozenClock
from tests.service.web.world import NOW

MIGRATED = "migrated"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with server() as running:
        store = Store(running.create(MIGRATED))
        store.upgrade()
        store.close()
        yield running


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(NOW)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        shutil.copy(blank(), tmp_path / "store.sqlite3")
        yield f"sqlite:///{tmp_path}/store.sqlite3"
        return
    running: Postgres = request.getfixturevalue("postgres")
    yield running.url(MIGRATED)
    running.sql("; ".join(f"DELETE FROM {table}" for table in metadata.tables), MIGRATED)


@pytest.fixture
def store(url: str, clock: FrozenClock) -> Iterator[Store]:
    made = Store(url, clock=clock)
    yield made
    made.close()


@pytest.fixture
def here(store: Store, clock: FrozenClock) -> World:
    return world(store, clock)
