"""What the attacks have in common: new databases of both kinds, and one server for the tests that do not change it."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.attack.server import PROXY_SECRET, Server, serving
from tests.labs.postgres import Postgres
from tests.service.databases import MIGRATED, Emptier, copy_migrated, create_migrated


@pytest.fixture(scope="session")
def empty_postgres(postgres_server: Postgres) -> Iterator[Callable[[], str]]:
    """Empties the one migrated database of the server and returns its URL: a new one takes a second."""
    create_migrated(postgres_server)
    with closing(Emptier(postgres_server)) as empty:

        def again() -> str:
            empty()
            return postgres_server.url(MIGRATED)

        yield again


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def new_database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    """Makes an empty migrated database and returns its URL; the one before it is not used any more."""
    if request.param == "sqlite":
        return lambda: copy_migrated(tmp_path_factory.mktemp("database") / "attacked.sqlite3")
    made: Callable[[], str] = request.getfixturevalue("empty_postgres")
    return made


@pytest.fixture(scope="module")
def server(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Behind a proxy that authenticates people."""
    given = {
        "DATABASE_URL": new_database(),
        "PROXY_SECRET": PROXY_SECRET,
        "ROLES": "sre=operator",
        "GROUPS_CLAIM": "X-Groups",
        "USER_CLAIM": "X-User",
        "MAX_CONNECTIONS": "40",
    }
    with serving(tmp_path_factory.mktemp("attack"), **given) as started:
        yield started
