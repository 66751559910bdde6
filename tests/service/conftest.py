"""A migrated store on each of the two databases, new for every test."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

from service.db.session import Store
from tests.labs.postgres import Postgres, server
from tests.service.databases import MIGRATED, Emptier, copy_migrated, create_migrated
from tests.service.frozen_clock import FrozenClock

_numbers = count()


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(datetime(2026, 11, 20, 12, 0, tzinfo=UTC))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with server() as running:
        create_migrated(running)
        yield running


@pytest.fixture(scope="session")
def empty_migrated(postgres: Postgres) -> Iterator[Emptier]:
    emptier = Emptier(postgres)
    yield emptier
    emptier.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def dialect(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def empty_url(dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without a schema."""
    if dialect == "sqlite":
        yield f"sqlite:///{tmp_path}/empty.sqlite3"
        return
    running: Postgres = request.getfixturevalue("postgres")
    name = f"test_{next(_numbers)}"
    yield running.create(name)
    running.drop(name)


@pytest.fixture
def url(dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A migrated database."""
    if dialect == "sqlite":
        yield copy_migrated(tmp_path / "store.sqlite3")
        return
    # One database for all: making one costs more than most tests do. What a test left is removed after it.
    running: Postgres = request.getfixturevalue("postgres")
    empty: Emptier = request.getfixturevalue("empty_migrated")
    yield running.url(MIGRATED)
    empty()


@pytest.fixture
def open_store(url: str, clock: FrozenClock) -> Iterator[Callable[[], Store]]:
    """Opens stores on one database, as several processes would."""
    opened: list[Store] = []

    def another() -> Store:
        opened.append(Store(url, clock=clock))
        return opened[-1]

    yield another
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Store:
    return open_store()
