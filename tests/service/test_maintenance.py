"""Old rows go by themselves, once a day."""

from datetime import timedelta
from pathlib import Path

import pytest

from service import maintenance
from service.deliveries.records import OutboxMessage
from service.maintenance import Retention, RetentionDays, UndeliverableMessages
from tests.service.web.world import event, lines, make_world


def test_old_rows_are_removed_once_a_day_and_0_keeps_them(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    client = world.client()
    client.post(
        "/api/v1/events", content=lines(event("1"), event("2")), headers={"Content-Type": "application/x-ndjson"}
    )
    retention = Retention(world.store, world.clock, RetentionDays(rows=10, verdicts=0, logs=5, done=0))
    assert retention.run_if_due() is not None
    assert len(client.get("/api/v1/failures").json()["items"]) == 2
    world.clock.at += timedelta(days=6)
    purged = retention.run_if_due()
    assert purged is not None
    assert (purged.logs, purged.failures) == (2, 0)
    assert retention.run_if_due() is None
    assert Retention(world.store, world.clock, RetentionDays(1, 1, 1, 1)).run_if_due() is None
    world.clock.at += timedelta(days=6)
    purged = retention.run_if_due()
    assert purged is not None
    assert purged.failures == 2
    assert client.get("/api/v1/failures").json()["items"] == []
    world.store.close()


def test_retention_runs_after_the_clock_was_ahead_for_a_while(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    retention = Retention(world.store, world.clock, RetentionDays(rows=0, verdicts=0, logs=0, done=0))
    world.clock.at += timedelta(days=3_000)
    assert retention.run_if_due() is not None
    world.clock.at -= timedelta(days=3_000)
    assert retention.run_if_due() is not None
    assert retention.run_if_due() is None
    world.store.close()


def test_all_messages_without_receivers_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "PASSED_OVER", 10)
    world = make_world(tmp_path)
    with world.store.unit_of_work() as work:
        work.outbox.add([OutboxMessage("a", "k", {"number": number}) for number in range(35)])
    world.clock.at += timedelta(days=2)
    UndeliverableMessages(world.store, world.clock)()
    with world.store.unit_of_work() as work:
        assert work.outbox.lease("me", limit=99, seconds=5) == []
    world.store.close()
