"""A migrated SQLite store for each test, and a world over it."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from service.store.session import Store
from tests.service.automation.world import World, world
from tests.service.frozen_clock import FrozenClock
from tests.service.web.world import NOW


@cache
def _blank() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="faultline-automation-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    store = Store(f"sqlite:///{folder}/store.sqlite3")
    store.upgrade()
    store.close()
    return folder / "store.sqlite3"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(NOW)


@pytest.fixture
def store(tmp_path: Path, clock: FrozenClock) -> Iterator[Store]:
    shutil.copy(_blank(), tmp_path / "store.sqlite3")
    made = Store(f"sqlite:///{tmp_path}/store.sqlite3", clock=clock)
    yield made
    made.close()


@pytest.fixture
def here(store: Store, clock: FrozenClock) -> World:
    return world(store, clock)
