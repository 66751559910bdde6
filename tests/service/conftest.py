"""A migrated store on each of the two databases, new for every test."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from service.db.all_tables import metadata
from service.db.session import Store
from tests.labs.postgres import Postgres, server

_numbers = count()
MIGRATED = "migrated"


class FixedClock:
    """A clock that only the test advances."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(datetime(2026, 11, 20, 12, 0, tzinfo=UTC))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with server() as running:
        url = running.create(MIGRATED)
        store = Store(url)
        store.upgrade()
        store.close()
        yield running


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "migrated.sqlite3"
    store = Store(f"sqlite:///{path}")
    store.upgrade()
    store.close()
    return path


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
        path = tmp_path / "store.sqlite3"
        shutil.copy(request.getfixturevalue("migrated_file"), path)
        yield f"sqlite:///{path}"
        return
    # One database for all: making one costs more than most tests do. What a test left is removed after it.
    running: Postgres = request.getfixturevalue("postgres")
    yield running.url(MIGRATED)
    running.sql("; ".join(f"DELETE FROM {table}" for table in metadata.tables), MIGRATED)


@pytest.fixture
def open_store(url: str, clock: FixedClock) -> Iterator[Callable[[], Store]]:
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
