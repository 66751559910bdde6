"""A verdict that was changed outside the service is detected; removal by retention is not a change."""

from datetime import timedelta

import pytest
from sqlalchemy import event, text

from service.db.session import Store
from service.failures.repository import verdict_seals
from tests.service.databases import engine_of
from tests.service.sample_rows import NOON, job, put

LATER = NOON + timedelta(days=365)


def test_sealed_verdicts_are_intact_until_one_is_changed(store: Store) -> None:
    outcomes = put(store, [job(str(number)) for number in range(7)])
    third, fourth = (outcomes[number].failure_id or 0 for number in (2, 3))
    with store.unit_of_work() as work:
        assert work.verdict_seals.seal(LATER) == 7
        assert work.verdict_seals.seal(LATER) == 0
    put(store, [job("late")])
    with store.unit_of_work() as work:
        assert work.verdict_seals.seal(LATER) == 1
    with store.reading() as reading:
        found = reading.verdict_seals.check()
    assert (found.intact, found.removed, found.changed, found.broken) == (8, 0, (), ())
    with engine_of(store).begin() as connection:
        connection.execute(text("UPDATE verdicts SET model = 'another' WHERE failure_id = :id"), {"id": third})
        connection.execute(
            text("UPDATE logs SET event = :other WHERE failure_id = :id"), {"other": b"{}", "id": fourth}
        )
    with store.reading() as reading:
        assert reading.verdict_seals.check().changed == ((third, 1), (fourth, 1))


def test_many_seals_are_checked_in_portions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict_seals, "MOST", 1)
    monkeypatch.setattr(verdict_seals, "_SEALS", 2, raising=False)
    put(store, [job(str(number)) for number in range(5)])
    for _ in range(5):
        with store.unit_of_work() as work:
            assert work.verdict_seals.seal(LATER) == 1
    with engine_of(store).begin() as connection:
        connection.execute(text("UPDATE seals SET hash = entries WHERE id = 4"))
    asked: list[str] = []
    with store.reading() as reading:
        connection = reading.verdict_seals._connection
        event.listen(connection, "before_cursor_execute", lambda *given: asked.append(given[2]))
        found = reading.verdict_seals.check()
    assert (found.intact, found.broken) == (5, (4, 5))
    of_seals = [one for one in asked if "FROM seals" in one]
    assert len(of_seals) == 3
    assert all("LIMIT" in one for one in of_seals)


def test_verdicts_are_counted_by_model_before_and_after_sealing(store: Store) -> None:
    put(store, [job(str(number)) for number in range(5)], model="first 1", rules="r 1")
    put(store, [job(f"b{number}") for number in range(2)], model="second 1", rules="r 1")

    def model_counts() -> set[tuple[str, str, int]]:
        with store.reading() as reading:
            return {(one.model, one.rules, one.verdicts) for one in reading.verdict_seals.models()}

    expected = {("first 1", "r 1", 5), ("second 1", "r 1", 2)}
    assert model_counts() == expected
    with store.unit_of_work() as work:
        work.verdict_seals.seal(LATER)
    assert model_counts() == expected
    put(store, [job("c")], model="second 1", rules="r 1")
    assert model_counts() == {("first 1", "r 1", 5), ("second 1", "r 1", 3)}
    with store.unit_of_work() as work:
        work.verdict_seals.seal(LATER)
    store.purge(rows_before=LATER)
    assert model_counts() == {("first 1", "r 1", 5), ("second 1", "r 1", 3)}


def test_records_that_retention_removed_count_as_removed(store: Store) -> None:
    put(store, [job(str(number)) for number in range(4)])
    with store.unit_of_work() as work:
        work.verdict_seals.seal(LATER)
    store.purge(logs_before=LATER, verdicts_before=LATER)
    with store.reading() as reading:
        found = reading.verdict_seals.check()
    assert (found.intact, found.removed, found.changed) == (0, 4, ())


def test_a_changed_seal_is_detected(store: Store) -> None:
    put(store, [job("1")])
    with store.unit_of_work() as work:
        work.verdict_seals.seal(LATER)
    with engine_of(store).begin() as connection:
        connection.execute(text("UPDATE seals SET since = until, records = 9, hash = entries"))
    with store.reading() as reading:
        assert reading.verdict_seals.check().broken == (1,)
