"""A service on a migrated store on each of the two databases, new for every test."""

import pytest

from service.db.session import Store
from tests.service.automation.world import World, world
from tests.service.frozen_clock import FrozenClock
from tests.service.web.world import NOW


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(NOW)


@pytest.fixture
def here(store: Store, clock: FrozenClock) -> World:
    return world(store, clock)
