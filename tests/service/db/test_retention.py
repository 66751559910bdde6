from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from service.db import retention
from service.db.retention import PurgeResult
from service.db.session import Store
from service.dead_letters.records import DeadLetter
from service.deliveries.records import OutboxMessage
from service.errors import NotFound
from service.failures.records import PendingLog
from service.groups.tables import group_hours
from service.nodes.records import FailureWeights, NodeRow
from tests.service.databases import engine_of
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON, STREAMS, job, put, succeeded

OLD = NOON - timedelta(days=100)


@pytest.fixture
def aged(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Five old failures and two old good jobs, two new failures; batches of two."""
    monkeypatch.setattr(retention, "BATCH", 2)
    put(store, [job(f"old{n}", ended_at=OLD, received_at=OLD) for n in range(5)])
    put(store, [succeeded(f"good{n}", ended_at=OLD, received_at=OLD) for n in range(2)])
    put(store, [job(f"new{n}") for n in range(2)])
    return store


def test_nothing_is_removed_without_a_limit(aged: Store) -> None:
    assert aged.purge() == PurgeResult()
    assert aged.purge(rows_before=OLD, logs_before=OLD, verdicts_before=OLD, done_before=OLD) == PurgeResult()


def test_the_key_of_a_removed_event_is_kept(aged: Store) -> None:
    assert aged.purge(rows_before=NOON) == PurgeResult(jobs=7, failures=5)
    keys = [*(f"old{n}" for n in range(5)), "good0", "new0"]
    with aged.reading() as reading:
        assert set(reading.jobs.known(keys)) == set(keys)
        assert reading.jobs.attempts("orion", "old0") == ()
        assert [row.job_id for row in reading.failures.page().items] == ["new1", "new0"]
        with pytest.raises(NotFound):
            reading.failures.get(1)
    late = put(aged, [job("old0"), job("old1", digest=b"other content"), job("fresh")])
    assert [(outcome.kind, outcome.id is None) for outcome in late] == [
        ("duplicate", True),
        ("conflict", True),
        ("new", False),
    ]
    with engine_of(aged).connect() as connection:
        for table in ("failures", "verdicts", "logs", "log_bodies"):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one() == 3
        assert connection.exec_driver_sql("SELECT count(*) FROM failure_nodes").scalar_one() == 6


def test_ids_are_never_reused(aged: Store) -> None:
    aged.purge(rows_before=NOON + timedelta(days=1))
    [outcome] = put(aged, [job("after")])
    assert outcome.id is not None
    assert outcome.id > 9


def test_an_event_with_a_clock_years_behind_is_not_removed(store: Store) -> None:
    put(store, [job("odd", ended_at=OLD - timedelta(days=9_000))])
    assert store.purge(rows_before=NOON - timedelta(days=30)) == PurgeResult()


def test_logs_are_removed_and_the_verdict_is_kept(aged: Store) -> None:
    with aged.reading() as reading:
        number = reading.jobs.attempts("orion", "old0")[0].failure_id or 0
    with aged.unit_of_work() as work:
        work.pending_logs.add([PendingLog(number, number, (), NOON, NOON)])
    assert aged.purge(logs_before=NOON) == PurgeResult(logs=5)
    assert aged.purge(logs_before=NOON) == PurgeResult()
    with aged.reading() as reading:
        found = reading.failures.get(number)
        new = reading.failures.get(reading.jobs.attempts("orion", "new0")[0].failure_id or 0)
        assert reading.statistics.health(NOON).pending_logs == 0
    assert [(stored.streams, stored.event) for stored in found.logs] == [((), {"job_id": "old0"})]
    assert found.verdict is not None
    assert new.logs[0].streams == STREAMS


def test_bodies_are_removed_and_the_searchable_fields_are_kept(aged: Store) -> None:
    assert aged.purge(verdicts_before=NOON) == PurgeResult(verdict_bodies=5)
    assert aged.purge(verdicts_before=NOON) == PurgeResult()
    with aged.reading() as reading:
        found = reading.failures.get(reading.jobs.attempts("orion", "old0")[0].failure_id or 0)
    assert (found.verdict, found.versions[0].body, found.row.cause) == (None, None, "USER.1")


def test_delivered_messages_and_dead_letters_are_removed(store: Store, clock: FrozenClock) -> None:
    letter = DeadLetter("x", "a" * 64, "jobs/0/1", "no")
    with store.unit_of_work() as work:
        work.outbox.add([OutboxMessage("failure.diagnosed", "k", {})] * 2)
        [leased] = work.outbox.lease("a", limit=1, seconds=1)
        work.outbox.done("a", [leased.id])
        work.dead_letters.add([letter, replace(letter, place="jobs/0/2", at=clock.at + timedelta(hours=2))])
    later = clock.at + timedelta(hours=1)
    assert store.purge(done_before=later) == PurgeResult(dead_letters=1, outbox=1)
    with store.reading() as reading:
        assert reading.outbox.waiting()
        assert reading.statistics.health(clock.at).outbox_waiting == 1
        assert [found.place for found in reading.dead_letters.page().items] == ["jobs/0/2"]


def test_nodes_that_are_no_longer_there_are_removed(store: Store) -> None:
    """Where each new machine has a new name, there would be more of them every day."""
    before = NOON - timedelta(days=30)
    nodes = [
        node("gone"),
        node("gone-too", last_failure_at=OLD, last_event_at=OLD),
        node("busy", jobs=3, exposure_h=0.5),
        node("failed", last_failure_at=NOON),
        node("reported", last_event_at=NOON),
        node("repaired"),
    ]
    with store.unit_of_work() as work:
        work.suspicion.put(nodes)
        work.repairs.note("orion", "repaired", at=NOON, actor=None, text=None)
    assert store.purge(logs_before=before, done_before=before) == PurgeResult()
    assert store.purge(rows_before=before) == PurgeResult(nodes=2)
    with store.reading() as reading:
        left = [row.node for row in reading.suspicion.page(sort="node").items]
    assert left == ["busy", "failed", "repaired", "reported"]


def test_hourly_counts_of_groups_go_with_their_failures(store: Store) -> None:
    with engine_of(store).begin() as connection:
        for at in (OLD, NOON):
            connection.execute(group_hours.insert().values(fingerprint="1:a", hour=at, failures=1, gpu_hours_lost=0.0))
    store.purge(rows_before=NOON - timedelta(days=30))
    with engine_of(store).connect() as connection:
        assert [row.hour for row in connection.execute(group_hours.select())] == [NOON]


def test_what_a_failure_added_to_its_nodes_goes_with_it(aged: Store) -> None:
    """Whatever the age of other rows: an attempt of a clock that is ahead stays for years."""
    with aged.reading() as reading:
        numbers = {name: reading.jobs.attempts("orion", name)[0].failure_id or 0 for name in ("old0", "old4", "new0")}
    with aged.unit_of_work() as work:
        work.failure_facts.put_weights([FailureWeights(one, "orion", OLD, {"gpu1": 1.0}) for one in numbers.values()])
    aged.purge(rows_before=NOON)
    with aged.reading() as reading:
        assert set(reading.failure_facts.weights(numbers.values())) == {numbers["new0"]}


def node(name: str, **values: Any) -> NodeRow:
    """A node without jobs."""
    plain: dict[str, Any] = {field.name: None for field in fields(NodeRow)}
    numbers: dict[str, Any] = {"rate_ratio": 1.0, "low": 0.0, "high": 1.0, "exposure_h": 0.0, "blame": 0.0}
    return NodeRow(
        **{
            **plain,
            **numbers,
            "cluster": "orion",
            "node": name,
            "jobs": 0,
            "failures": 0,
            "computed_at": NOON,
            **values,
        }
    )
