"""Databases of earlier versions are upgraded: every row is kept, API and pages show it."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from fastapi.testclient import TestClient
from sqlalchemy import text

from service.db import schema
from service.db.all_tables import metadata
from service.db.engine import connect
from service.db.session import Store
from tests.labs.postgres import Postgres
from tests.service.databases import engine_of
from tests.service.db import released
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import job, put
from tests.service.web.world import NOW, make_world

pytestmark = pytest.mark.slow

API = "/api/v1"
PAGES = (
    "/",
    "/failures",
    "/groups",
    "/incidents",
    "/nodes",
    "/goodput",
    "/automation",
    "/model",
    "/signatures",
    "/dead-letters",
    "/deliveries",
)
LISTS = ("failures", "groups", "incidents", "nodes", "dead-letters", "resubmissions", "reports")
EARLIER = sorted(
    script.revision
    for script in ScriptDirectory.from_config(schema.config()).walk_revisions()
    if script.revision != schema.head()
)


def drift(store: Store) -> list[object]:
    """How the schema differs from the tables that the code declares."""
    with engine_of(store).connect() as connection:
        options = {
            "compare_type": True,
            "target_metadata": metadata,
            "include_name": lambda name, kind, _parent: not schema.is_of_one_database(name, kind),
        }
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


@pytest.fixture
def released_url(dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database as version 0.1.0 left it."""
    if dialect == "sqlite":
        yield released.write_sqlite(tmp_path / "released.sqlite3")
        return
    server: Postgres = request.getfixturevalue("postgres")
    name = f"released_{request.node.name.partition('[')[0]}"
    yield released.write_postgres(server, name, lambda url: connect(url, pool_size=1), tmp_path)
    server.drop(name)


@pytest.fixture
def upgraded(released_url: str, clock: FrozenClock) -> Iterator[Store]:
    with closing(Store(released_url, clock=clock)) as store:
        store.upgrade()
        yield store


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An upgraded database for all tests that only read."""
    folder = tmp_path_factory.mktemp("released")
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = released.write_sqlite(folder / "released.sqlite3")
        else:
            server: Postgres = request.getfixturevalue("postgres")
            stack.callback(server.drop, "released_shown")
            url = released.write_postgres(server, "released_shown", lambda url: connect(url, pool_size=1), folder)
        store = stack.enter_context(closing(Store(url, clock=FrozenClock(NOW))))
        store.upgrade()
        yield store


@pytest.fixture(scope="module")
def client(shown: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Somebody with a token that may read everything: the database has accounts, so that nobody reads without one."""
    world = make_world(tmp_path_factory.mktemp("web"), store=shown)
    with shown.unit_of_work() as work:
        _, secret = work.tokens.create("reader", ["read"])
    with world.client(secret) as client:
        yield client


def test_an_upgrade_keeps_every_row(released_url: str) -> None:
    with closing(Store(released_url)) as store:
        with engine_of(store).connect() as connection:
            before = released.rows_by_table(connection)
        assert store.upgrade() == (released.REVISION, schema.head())
        store.check()
        assert drift(store) == []
        with engine_of(store).connect() as connection:
            after = released.rows_by_table(connection)
            counted = {
                "hours": "SELECT count(*) FROM hours WHERE kind IN ('jobs', 'failures')",
                "days": "SELECT count(*) FROM days WHERE scope <> 'sums'",
            }
            without_sums = {name: connection.execute(text(wanted)).scalar_one() for name, wanted in counted.items()}
        assert all(after[name] > many for name, many in without_sums.items())
        after |= without_sums
        before["counters"] += 1  # which says that logs are in the rows of their events
        assert {name: after[name] for name in before} == before
        assert (before["failures"], before["requests"], before["deliveries"]) == (16, 8, 38)


def test_lists_of_the_api_show_what_was_stored(client: TestClient) -> None:
    items = {name: client.get(f"{API}/{name}", params={"limit": 100}).json()["items"] for name in LISTS}
    assert all(items.values()), {name for name, found in items.items() if not found}
    failures = {one["job_id"]: one for one in items["failures"]}
    assert len(failures) == 15  # one job has two failures
    assert (failures["884120"]["side"], failures["884120"]["suspect_node"]) == ("hardware", "gpu018")
    assert failures["884130"]["side"] == "system"
    assert len(items["groups"]) == 8
    assert {one["key"] for one in items["incidents"]} == {"orion|file_system|/scratch", "orion|rack|r7"}
    assert len(items["dead-letters"]) == 3
    found = client.get(f"{API}/failures", params={"q": "stale file handle", "limit": 100}).json()["items"]
    assert {one["job_id"] for one in found} == {f"88413{n}" for n in range(6)}
    stats = client.get(f"{API}/stats", params={"since": "2026-11-01T00:00:00Z", "until": "2026-11-20T00:00:00Z"}).json()
    assert (stats["stats"]["succeeded"], stats["stats"]["preempted"]) == (4, 1)


def test_details_of_the_api_show_what_was_stored(client: TestClient) -> None:
    items = client.get(f"{API}/failures", params={"limit": 100}).json()["items"]
    for item in items:
        detail = client.get(f"{API}/failures/{item['id']}")
        assert detail.status_code == 200
        assert detail.json()["verdict"]["side"] == item["side"]
    feedback = client.get(f"{API}/failures/7/feedback").json()
    assert [one["kind"] for one in feedback["items"]] == ["confirm"]
    assert feedback["fixed_by"]["code"] == "M5"
    deliveries = [client.get(f"{API}/deliveries", params={"state": state}).json() for state in ("waiting", "sent")]
    assert any(one["items"] for one in deliveries)
    attempts = client.get(f"{API}/jobs/orion/884160").json()["attempts"]
    assert [one["status"] for one in attempts] == ["succeeded"]
    assert client.get(f"{API}/reports/2026-W46").json()["week"] == "2026-W46"
    assert client.get(f"{API}/automation").json()["switch"]["stopped"] is True


def test_pages_show_what_was_stored(client: TestClient) -> None:
    for page in PAGES:
        assert client.get(page).status_code == 200, page
    assert "884130" in client.get("/failures").text
    for failure in (6, 7, 11, 21):
        assert client.get(f"/failures/{failure}").status_code == 200
    assert "storage maintenance" in client.get("/automation").text
    assert "power work" in client.get("/incidents/2").text
    assert "seen in the stand-up" in client.get("/groups/7").text
    assert "memory replaced" in client.get("/nodes/orion/gpu022").text
    assert client.get("/reports/2026-W46").status_code == 200


def test_chains_of_the_audit_log_and_the_seals_still_hold(upgraded: Store) -> None:
    with upgraded.reading() as reading:
        assert reading.audit_log.verify() == (16, None)
        seals = reading.verdict_seals.check()
    assert (seals.changed, seals.broken) == ((), ())
    assert seals.intact > 0


def test_an_upgraded_database_takes_new_jobs(upgraded: Store) -> None:
    put(upgraded, [job("new")])
    with upgraded.reading() as reading:
        [newest] = reading.failures.page(limit=1).items
        assert newest.job_id == "new"
        assert reading.jobs.attempts("orion", "884120")


@pytest.mark.parametrize("revision", EARLIER)
def test_every_earlier_revision_is_upgraded(revision: str, tmp_path: Path) -> None:
    engine = connect(f"sqlite:///{tmp_path}/earlier.sqlite3", pool_size=1)
    schema.upgrade(engine, revision)
    engine.dispose()
    with closing(Store(f"sqlite:///{tmp_path}/earlier.sqlite3")) as store:
        assert store.upgrade() == (revision, schema.head())
        store.check()
        assert drift(store) == []
