import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from sqlalchemy.pool import QueuePool

from service.db import engine
from service.db.session import Store
from service.errors import ConfigurationError, Unavailable
from service.failures.records import NewFailure
from service.jobs.repository.jobs import JobRepository
from tests.labs.postgres import Postgres, server
from tests.service.databases import MIGRATED, Emptier, connection_of, engine_of, migrated_file
from tests.service.sample_rows import job, put, verdict


@pytest.mark.parametrize(
    "url", ["mysql://u:geheim@h/d", "sqlite://", "sqlite:///:memory:", "no url", "", "postgresql+asyncpg://h/d"]
)
def test_a_wrong_url_names_the_setting_and_shows_no_secret(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Store(url)
    assert "FAULTLINE_DATABASE_URL" in caught.value.detail
    assert "geheim" not in f"{caught.value.detail}{caught.value.errors}"


def read(store: Store) -> None:
    """Open a snapshot, which takes a connection."""
    with store.reading():
        pass


def test_the_caches_of_all_sqlite_connections_together_are_bounded() -> None:
    made = engine.connect(f"sqlite:///{migrated_file()}", pool_size=5).execution_options(**{engine.READING: True})
    with ExitStack() as stack:
        connections = [stack.enter_context(made.connect()) for _ in range(10)]
        kib = [-one.exec_driver_sql("PRAGMA cache_size").scalar_one() for one in connections]
        assert isinstance(made.pool, QueuePool)
        assert made.pool.size() == 10  # none of them is closed when it is given back
    made.dispose()
    assert sum(kib) <= 64 * 1024


def test_an_unreachable_server_is_unavailable() -> None:
    with closing(Store("postgresql://u:geheim@127.0.0.1:1/d")) as store:
        for act in (lambda: read(store), store.check, store.upgrade):
            with pytest.raises(Unavailable) as caught:
                act()
            assert "geheim" not in caught.value.detail


@pytest.mark.lab
@pytest.mark.parametrize("query", ["host=127.0.0.1,127.0.0.1&port=1,{port}", "host=127.0.0.1:1&host=127.0.0.1:{port}"])
def test_of_several_servers_the_one_that_accepts_writes_is_used(postgres_server: Postgres, query: str) -> None:
    hosts = query.format(port=postgres_server.port)
    url = f"postgresql://faultline:geheim@/postgres?{hosts}&target_session_attrs=read-write"
    with closing(Store(url)) as store:
        read(store)
    with closing(Store(url.replace("read-write", "standby"))) as store, pytest.raises(Unavailable) as caught:
        read(store)
    assert "geheim" not in caught.value.detail


def test_the_driver_is_only_needed_for_postgresql(tmp_path: Path) -> None:
    program = f"""
import sys
sys.modules["psycopg"] = None
from service.errors import ConfigurationError
from service.failures.records import NewFailure
from service.db.session import Store
Store("sqlite:///{tmp_path}/a.sqlite3").upgrade()
try:
    Store("postgresql://h/d")
except ConfigurationError as error:
    print(error.detail)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert "faultline[postgres]" in done.stdout


def test_a_file_that_is_not_a_database_is_named_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 100)
    with closing(Store(f"sqlite:///{path}")) as store, pytest.raises(ConfigurationError, match="not a SQLite database"):
        read(store)


def test_reading_does_not_create_a_file(tmp_path: Path) -> None:
    path = tmp_path / "none.sqlite3"
    with closing(Store(f"sqlite:///{path}")) as store, pytest.raises(ConfigurationError, match="db upgrade"):
        read(store)
    assert not path.exists()


def test_a_locked_file_is_unavailable_and_then_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_S", 0.1)
    path = tmp_path / "busy.sqlite3"
    path.write_bytes(migrated_file().read_bytes())
    with closing(Store(f"sqlite:///{path}")) as store, closing(Store(f"sqlite:///{path}")) as other:
        with other.unit_of_work(), pytest.raises(Unavailable, match="locked"):
            put(store, [job("a")])
        put(store, [job("a")])


def test_reading_does_not_wait_for_a_writer(open_store: Callable[[], Store]) -> None:
    writer, reader = open_store(), open_store()
    with writer.unit_of_work() as work:
        work.jobs.add([job("a")])
        with reader.reading() as reading:
            assert reading.jobs.known(["a"]) == {}


def test_a_read_session_reads_one_snapshot(open_store: Callable[[], Store]) -> None:
    writer, reader = open_store(), open_store()
    with reader.reading() as reading:
        assert reading.jobs.known(["a"]) == {}
        put(writer, [job("a")])
        assert reading.jobs.known(["a"]) == {}


def test_reading_cannot_write(store: Store) -> None:
    with pytest.raises(Exception, match=r"readonly|read-only"), store.reading() as reading:
        JobRepository(connection_of(reading.jobs)).add([job("a")])
    with store.reading() as reading:
        assert reading.jobs.known(["a"]) == {}
    put(store, [job("a")])


def test_all_connections_in_use_is_unavailable(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Store(url, pool_size=1)) as store:
        monkeypatch.setattr(engine_of(store).pool, "_timeout", 0.1)
        with store.reading(), store.reading(), pytest.raises(Unavailable), store.reading():
            pass


def _add_and(store: Store, happens: Callable[[], object]) -> None:
    with store.unit_of_work() as work:
        outcomes = work.jobs.add([job("during")])
        happens()
        work.failures.add([NewFailure(outcomes[0], job("during"), verdict())])


@pytest.mark.lab
def test_a_killed_server_leaves_no_partial_transaction_and_recovers() -> None:
    with server() as running, closing(Store(running.url())) as store:
        store.upgrade()
        put(store, [job("before")])
        with pytest.raises(Unavailable):
            _add_and(store, running.kill)
        with pytest.raises(Unavailable):
            read(store)
        running.start()
        with store.reading() as reading:
            assert set(reading.jobs.known(["before", "during"])) == {"before"}
        put(store, [job("during")])


@pytest.mark.lab
def test_a_session_that_the_server_ends_while_rows_are_copied_is_unavailable(
    postgres: Postgres, empty_migrated: Emptier
) -> None:
    name = "ended"
    empty_migrated.close()  # a template has no sessions
    url = postgres.create(name, template=MIGRATED)
    try:
        with closing(Store(url)) as store:
            end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            with pytest.raises(Unavailable):
                _add_and(store, lambda: postgres.sql(end))
            assert put(store, [job("during")])[0].kind == "new"
    finally:
        postgres.drop(name)


@pytest.mark.lab
def test_a_restarted_server_causes_no_error() -> None:
    with server() as running, closing(Store(running.url())) as store:
        store.upgrade()
        put(store, [job("a")])
        running.restart()
        put(store, [job("b")])
        with store.reading() as reading:
            assert set(reading.jobs.known(["a", "b"])) == {"a", "b"}


def test_threads_share_a_store(store: Store) -> None:
    failed: list[BaseException] = []

    def work(of: int) -> None:
        try:
            for n in range(5):
                put(store, [job(f"{of}-{n}")])
        except BaseException as error:  # noqa: BLE001 - handed to the test
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with store.reading() as reading:
        assert len(reading.jobs.known([f"{of}-{n}" for of in range(4) for n in range(5)])) == 20
