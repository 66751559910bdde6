"""What every test in a browser starts from."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.flows.chromium import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; one a module, since an event loop runs in this thread for as long as it is there."""
    with chromium() as made:
        yield made
