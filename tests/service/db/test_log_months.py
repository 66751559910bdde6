"""Logs are partitioned by month on PostgreSQL: inserts, reads, retention, upgrade and downgrade."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from alembic import command
from sqlalchemy import text

from classifiers.contracts import LogStream
from service.db import log_months, retention, schema
from service.db.log_months import Month
from service.db.session import Store
from service.errors import Unavailable
from service.maintenance import Retention, RetentionDays
from tests.labs.postgres import Postgres
from tests.service.databases import engine_of
from tests.service.db.test_plans import statements
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON, STREAMS, job, put, verdict

BEFORE_LOG_BODIES = "0021"
FAR_PAST, FAR_FUTURE = datetime(1970, 1, 1, tzinfo=UTC), datetime(2099, 12, 31, tzinfo=UTC)
FIRST_OF_NOVEMBER = datetime(2026, 11, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
def made(postgres: Postgres) -> Iterator[Callable[..., Store]]:
    """Opens a store on a PostgreSQL database of its own, of a revision, at a time."""
    with ExitStack() as stack:

        def make(name: str, at: datetime = NOON, revision: str = "head", clock: FrozenClock | None = None) -> Store:
            stack.callback(postgres.drop, name)
            store = stack.enter_context(closing(Store(postgres.create(name), clock=clock or FrozenClock(at))))
            schema.upgrade(engine_of(store), revision)
            return store

        yield make


def set_months(store: Store, *months: tuple[int, int]) -> None:
    """Make partitions of these months only, whenever the test runs."""
    with engine_of(store).begin() as connection:
        for there in log_months.months(connection):
            connection.exec_driver_sql(f"DROP TABLE {there.partition}")
    for year, month in months:
        with engine_of(store).begin() as connection:
            assert log_months.create_month(connection, Month(year, month))


def rows_by_partition(store: Store) -> dict[str, int]:
    with engine_of(store).connect() as connection:
        found = connection.execute(text("SELECT tableoid::regclass::text, count(*) FROM log_bodies GROUP BY 1"))
        return {row[0].removeprefix("log_bodies_"): row[1] for row in found}


def partitions(store: Store) -> list[tuple[int, int]]:
    with engine_of(store).connect() as connection:
        return [(one.year, one.month) for one in log_months.months(connection)]


def streams_of(store: Store, event_id: str) -> list[tuple[LogStream, ...]]:
    with store.reading() as reading:
        failure_id = reading.jobs.attempts("orion", event_id)[0].failure_id or 0
        return [tuple(kept.streams) for kept in reading.failures.get(failure_id).logs]


@pytest.mark.lab
def test_a_log_is_in_the_month_in_which_its_job_ended(made: Callable[..., Store]) -> None:
    store = made("months_edges")
    set_months(store, (2026, 10), (2026, 11))
    put(store, [job("last", ended_at=FIRST_OF_NOVEMBER - MICROSECOND), job("first", ended_at=FIRST_OF_NOVEMBER)])
    put(store, [job("end", ended_at=datetime(2026, 11, 30, 23, 59, 59, 999_999, tzinfo=UTC))])
    assert rows_by_partition(store) == {"2026_10": 1, "2026_11": 2}
    assert [streams_of(store, name) for name in ("last", "first", "end")] == [[STREAMS]] * 3


@pytest.mark.lab
def test_a_log_of_a_month_without_a_partition_is_stored_and_moved_when_there_is_one(made: Callable[..., Store]) -> None:
    store = made("months_default")
    set_months(store)
    put(store, [job("now"), job("behind", ended_at=FAR_PAST), job("ahead", ended_at=FAR_FUTURE)])
    assert rows_by_partition(store) == {"default": 3}
    store.prepare_months()
    assert partitions(store) == [(2026, 11), (2026, 12), (2027, 1), (2027, 2)]
    assert rows_by_partition(store) == {"default": 2, "2026_11": 1}
    assert [streams_of(store, name) for name in ("now", "behind", "ahead")] == [[STREAMS]] * 3
    store.prepare_months()
    assert len(partitions(store)) == 4


@pytest.mark.lab
def test_a_month_with_too_many_logs_to_move_stays_where_it_is(
    made: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_months, "MOVED_MOST", 2)
    store = made("months_many")
    set_months(store)
    put(store, [job(f"now{number}") for number in range(3)])
    store.prepare_months()
    assert partitions(store) == [(2026, 12), (2027, 1), (2027, 2)]
    assert rows_by_partition(store) == {"default": 3}


@pytest.mark.lab
def test_maintenance_creates_the_coming_months(made: Callable[..., Store]) -> None:
    clock = FrozenClock(NOON)
    store = made("months_maintained", clock=clock)
    set_months(store)
    task = Retention(store, clock, RetentionDays(rows=0, verdicts=0, logs=0, done=0))
    for at in (NOON, NOON + timedelta(days=40)):
        clock.at = at
        task.run_if_due()
    assert partitions(store) == [(2026, 11), (2026, 12), (2027, 1), (2027, 2), (2027, 3)]


@pytest.mark.lab
def test_retention_drops_months_and_deletes_the_rest_row_by_row(
    made: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    store = made("months_retention")
    set_months(store, (2026, 8), (2026, 9), (2026, 10), (2026, 11))
    for month in (8, 9):
        put(store, [job(f"whole{month}-{n}", ended_at=datetime(2026, month, 3 + n, tzinfo=UTC)) for n in range(5)])
    put(store, [job(f"part{n}", ended_at=datetime(2026, 10, 3 + n, tzinfo=UTC)) for n in range(5)])
    put(store, [job("behind", ended_at=FAR_PAST), job("new")])
    cut = datetime(2026, 10, 6, tzinfo=UTC)
    assert store.purge(logs_before=cut).logs == 10 + 3 + 1
    assert partitions(store) == [(2026, 10), (2026, 11)]
    assert rows_by_partition(store) == {"2026_10": 2, "2026_11": 1}
    assert store.purge(logs_before=cut).logs == 0
    assert [streams_of(store, name) for name in ("whole8-0", "part2", "behind")] == [[()]] * 3
    assert [streams_of(store, name) for name in ("part3", "new")] == [[STREAMS]] * 2
    with store.reading() as reading:
        detail = reading.failures.get(1)
    assert (detail.logs[0].event, detail.verdict) == ({"job_id": "whole8-0"}, verdict())


@pytest.mark.lab
def test_a_month_ends_for_retention_only_when_all_of_it_is_old(made: Callable[..., Store]) -> None:
    store = made("months_exact")
    set_months(store, (2026, 10))
    put(store, [job("last", ended_at=FIRST_OF_NOVEMBER - MICROSECOND)])
    assert store.purge(logs_before=FIRST_OF_NOVEMBER - MICROSECOND).logs == 0
    assert partitions(store) == [(2026, 10)]
    assert store.purge(logs_before=FIRST_OF_NOVEMBER).logs == 1
    assert partitions(store) == []


@pytest.mark.lab
def test_rows_that_retention_removes_take_their_logs_with_them(made: Callable[..., Store]) -> None:
    store = made("months_rows")
    set_months(store, (2026, 8), (2026, 11))
    old = datetime(2026, 8, 3, tzinfo=UTC)
    put(store, [job("old", ended_at=old, received_at=old), job("new")])
    assert store.purge(rows_before=FIRST_OF_NOVEMBER).failures == 1
    assert rows_by_partition(store) == {"2026_11": 1}


@pytest.mark.lab
def test_a_log_that_arrives_later_replaces_the_one_of_its_attempt(made: Callable[..., Store]) -> None:
    store = made("months_later")
    set_months(store, (2026, 10), (2026, 11))
    [outcome] = put(store, [job("one", ended_at=FIRST_OF_NOVEMBER - MICROSECOND)])
    arrived = (LogStream("all of it", rank=0),)
    for streams in (arrived, arrived):
        with store.unit_of_work() as work:
            work.failures.revise(outcome.id or 0, verdict(), attempt_id=outcome.id, streams=streams)
    assert streams_of(store, "one") == [arrived]
    assert rows_by_partition(store) == {"2026_10": 1}


@pytest.mark.lab
def test_reading_a_failure_looks_only_into_the_month_of_its_log(made: Callable[..., Store]) -> None:
    store = made("months_plan")
    set_months(store, *((2026, month) for month in range(1, 13)))
    put(store, [job(f"m{month}", ended_at=datetime(2026, month, 9, tzinfo=UTC)) for month in range(1, 13)])
    with store.reading() as reading, statements(store) as seen:
        reading.failures.get(5)
    [(statement, parameters)] = [one for one in seen if "log_bodies" in one[0]]
    with engine_of(store).connect() as connection:
        plan = "\n".join(connection.exec_driver_sql(f"EXPLAIN {statement}", parameters).scalars())
    assert re.findall(r" on log_bodies_(\d{4}_\d\d|default) ", plan) == ["2026_05"], plan
    with engine_of(store).connect() as connection:
        cut = "EXPLAIN SELECT failure_id FROM log_bodies WHERE ended_at < '2026-03-15'"
        plan = "\n".join(connection.exec_driver_sql(cut).scalars())
    assert set(re.findall(r" on log_bodies_(\d{4}_\d\d|default) ", plan)) == {
        "2026_01",
        "2026_02",
        "2026_03",
        "default",
    }, plan


@pytest.mark.lab
def test_nothing_is_changed_while_the_locks_are_taken(
    made: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_months, "LOCK_TIMEOUT", "100ms")
    store = made("months_locked")
    set_months(store, (2026, 8))
    put(store, [job("old", ended_at=datetime(2026, 8, 3, tzinfo=UTC))])
    with engine_of(store).connect() as other:  # a backup reads every table in one transaction
        other.execute(text("SELECT count(*) FROM log_bodies")).scalar_one()
        for act in (store.prepare_months, lambda: store.purge(logs_before=NOON)):
            with pytest.raises(Unavailable, match="lock timeout"):
                act()
        put(store, [job("new")])
    assert partitions(store) == [(2026, 8)]
    assert streams_of(store, "old") == streams_of(store, "new") == [STREAMS]
    store.prepare_months()
    assert store.purge(logs_before=FIRST_OF_NOVEMBER).logs == 1
    assert rows_by_partition(store) == {"2026_11": 1}


@pytest.mark.lab
def test_a_user_who_does_not_own_the_tables_deletes_rows_instead(
    made: Callable[..., Store], postgres: Postgres
) -> None:
    owner = made("months_owner")
    set_months(owner, (2026, 8))
    with engine_of(owner).begin() as connection:
        connection.exec_driver_sql("CREATE ROLE months_service LOGIN")
        connection.exec_driver_sql("GRANT ALL ON ALL TABLES IN SCHEMA public TO months_service")
        connection.exec_driver_sql("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO months_service")
    try:
        url = postgres.url("months_owner").replace("//faultline@", "//months_service@")
        with closing(Store(url, clock=FrozenClock(NOON))) as store:
            put(store, [job("old", ended_at=datetime(2026, 8, 3, tzinfo=UTC)), job("new")])
            store.prepare_months()
            assert store.purge(logs_before=FIRST_OF_NOVEMBER).logs == 1
            assert rows_by_partition(store) == {"default": 1}
        assert partitions(owner) == [(2026, 8)]
    finally:
        with engine_of(owner).begin() as connection:
            connection.exec_driver_sql("DROP OWNED BY months_service")
            connection.exec_driver_sql("DROP ROLE months_service")


def with_logs_in_rows(store: Store) -> None:
    """Rows as revisions before 0022 wrote them: an old and a new failure, with their logs in `logs`."""
    schema.upgrade(engine_of(store))
    put(store, [job("old", ended_at=NOON - timedelta(days=100)), job("recent")])
    downgrade(store)


def downgrade(store: Store) -> None:
    with engine_of(store).begin() as connection:
        command.downgrade(schema.config(connection), BEFORE_LOG_BODIES)


def test_an_upgrade_leaves_stored_logs_where_they_are_and_a_downgrade_takes_all_back(
    empty_url: str, clock: FrozenClock
) -> None:
    with closing(Store(empty_url, clock=clock)) as store:
        with_logs_in_rows(store)
        assert column(store, "SELECT count(*) FROM logs WHERE streams IS NOT NULL") == 2
        file = "SELECT pg_relation_filenode('logs')" if store.dialect == "postgresql" else "SELECT 0"
        before = column(store, file)
        assert store.upgrade() == (BEFORE_LOG_BODIES, schema.head())
        assert column(store, file) == before  # not rewritten
        put(store, [job("new")])
        assert [streams_of(store, name) for name in ("old", "recent", "new")] == [[STREAMS]] * 3
        assert column(store, "SELECT count(*) FROM log_bodies") == 1
        downgrade(store)
        assert column(store, "SELECT count(*) FROM logs WHERE streams IS NOT NULL") == 3
        store.upgrade()
        assert [streams_of(store, name) for name in ("old", "recent", "new")] == [[STREAMS]] * 3


def test_retention_removes_logs_that_were_stored_before_the_upgrade(empty_url: str, clock: FrozenClock) -> None:
    left = "SELECT count(*) FROM counters WHERE name = 'logs_in_rows'"
    with closing(Store(empty_url, clock=clock)) as store:
        with_logs_in_rows(store)
        store.upgrade()
        put(store, [job("new", ended_at=NOON + timedelta(days=1))])
        assert store.purge(logs_before=NOON - timedelta(days=90)).logs == 1
        assert (streams_of(store, "old"), streams_of(store, "recent"), column(store, left)) == ([()], [STREAMS], 1)
        assert store.purge(logs_before=NOON + timedelta(hours=1)).logs == 1
        assert (streams_of(store, "recent"), streams_of(store, "new"), column(store, left)) == ([()], [STREAMS], 0)


def test_a_log_that_was_stored_before_the_upgrade_can_be_replaced(empty_url: str, clock: FrozenClock) -> None:
    arrived = (LogStream("all of it", rank=0),)
    with closing(Store(empty_url, clock=clock)) as store:
        with_logs_in_rows(store)
        store.upgrade()
        with store.unit_of_work() as work:
            work.failures.revise(2, verdict(), attempt_id=2, streams=arrived)
            work.failures.revise(1, verdict(), attempt_id=1, streams=())
        assert streams_of(store, "recent") == [arrived]
        assert streams_of(store, "old") == [()]
        assert column(store, "SELECT count(*) FROM logs WHERE streams IS NOT NULL") == 0


def test_no_log_is_kept_where_later_there_is_none(store: Store) -> None:
    [outcome] = put(store, [job("one")])
    with store.unit_of_work() as work:
        work.failures.revise(outcome.id or 0, verdict(), attempt_id=outcome.id, streams=())
    assert streams_of(store, "one") == [()]


def test_sqlite_has_no_months(tmp_path: Any, clock: FrozenClock) -> None:
    with closing(Store(f"sqlite:///{tmp_path}/one.sqlite3", clock=clock)) as store:
        store.upgrade()
        store.prepare_months()
        put(store, [job("old", ended_at=NOON - timedelta(days=100)), job("new")])
        assert store.purge(logs_before=NOON - timedelta(days=90)).logs == 1
        assert partitions(store) == []


def test_an_empty_database_has_no_logs_in_rows(empty_url: str) -> None:
    with closing(Store(empty_url)) as store:
        store.upgrade()
        assert column(store, "SELECT count(*) FROM counters WHERE name = 'logs_in_rows'") == 0


def column(store: Store, statement: str) -> int:
    with engine_of(store).connect() as connection:
        return int(connection.execute(text(statement)).scalar_one())
