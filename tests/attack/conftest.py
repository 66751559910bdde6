"""One server for the tests that do not change it."""

from collections.abc import Iterator

import pytest

from tests.attack.server import PROXY_SECRET, Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Behind a proxy that authenticates people."""
    given = {
        "PROXY_SECRET": PROXY_SECRET,
        "ROLES": "sre=operator",
        "GROUPS_CLAIM": "X-Groups",
        "USER_CLAIM": "X-User",
        "MAX_CONNECTIONS": "40",
    }
    with serving(tmp_path_factory.mktemp("attack"), **given) as started:
        yield started
