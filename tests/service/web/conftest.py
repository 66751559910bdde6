"""What every test of the web part starts from."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.service.web.world import World, make_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """On loopback, without tokens."""
    made = make_world(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def client(world: World) -> Iterator[TestClient]:
    with world.client() as client:
        yield client


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[World]:
    """Beyond loopback: a token is needed."""
    made = make_world(tmp_path, host="0.0.0.0")
    yield made
    made.store.close()
