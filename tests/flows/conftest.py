"""Shared fixtures of the browser tests."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.flows.chromium import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield Chromium; one for each module, since its event loop runs in this thread while it is open."""
    with chromium() as made:
        yield made
