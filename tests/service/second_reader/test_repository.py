"""Second readings on both databases: reserved once, counted, and found for failures that wait."""

from datetime import timedelta

from service.db.session import Store
from service.second_reader.repository import Candidate, SecondReading
from tests.service.sample_rows import NOON, job, put, verdict

DAY = timedelta(days=1)


def test_a_kind_is_reserved_once_answered_and_removed_with_verdicts(store: Store) -> None:
    candidate = Candidate(7, "v1:abc")
    with store.unit_of_work() as work:
        assert work.second_readings.reserve(candidate, NOON)
        assert not work.second_readings.reserve(Candidate(8, "v1:abc"), NOON)
        work.second_readings.store(
            SecondReading("v1:abc", 7, NOON, "answered", "m" * 300, "user", "USER.1", 0.8, "why\0", 900, 40)
        )
        work.second_readings.release("v1:abc")
    with store.reading() as reading:
        found = reading.second_readings.of("v1:abc")
        assert found == SecondReading(
            "v1:abc", 7, NOON, "answered", "m" * 200, "user", "USER.1", 0.8, "why\ufffd", 900, 40
        )
        assert reading.second_readings.count_since(NOON - DAY) == 1
        assert reading.second_readings.count_since(NOON) == 0
    store.purge(verdicts_before=NOON + DAY)
    with store.reading() as reading:
        assert reading.second_readings.of("v1:abc") is None


def test_recent_undecided_failures_of_the_classifier_wait(store: Store) -> None:
    put(store, [job("1"), job("2", ended_at=NOON + timedelta(hours=1))], abstained=True, fingerprint="v1:open")
    put(store, [job("3")], abstained=False, fingerprint="v1:sure")
    put(store, [job("4", ended_at=NOON - 3 * DAY)], abstained=True, fingerprint="v1:old")
    with store.unit_of_work() as work:
        [waiting] = work.second_readings.waiting(NOON - DAY, 10)
        assert waiting.fingerprint == "v1:open"
        assert work.failures.get(waiting.failure_id).row.job_id == "2"
        assert work.second_readings.reserve(waiting, NOON)
        assert work.second_readings.waiting(NOON - DAY, 10) == []
        work.second_readings.release("v1:open")
        assert work.second_readings.waiting(NOON - DAY, 10) == [waiting]


def test_new_versions_of_verdicts_are_found_oldest_first(store: Store) -> None:
    [outcome] = put(store, [job("1")])
    failure_id = outcome.failure_id
    assert failure_id is not None
    with store.reading() as reading:
        found = reading.second_readings.recent_verdicts(NOON - DAY, 10)
    assert [(one.failure_id, one.body) for one in found] == [(failure_id, verdict())]
    with store.reading() as reading:
        assert reading.second_readings.recent_verdicts(found[0].at, 10) == []
