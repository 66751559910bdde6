import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from service.db.session import Store
from service.failures.records import NewFailure
from service.jobs.records import JobOutcome, NewJob
from tests.service.sample_rows import NOON, job, put, succeeded, verdict


def kinds(outcomes: list[JobOutcome]) -> list[str]:
    return [outcome.kind for outcome in outcomes]


def test_an_attempt_round_trips(store: Store) -> None:
    given = job(
        "e1",
        job_id="123_4",
        attempt=2,
        name="vit-g",
        gpus=2**53,
        gpu_type="H100",
        submitted_at=NOON - timedelta(hours=2),
        ended_at=NOON.astimezone(timezone(timedelta(hours=5, minutes=30))),
        resubmit_of="99",
        restart_count=1,
        clock_suspect=True,
    )
    [outcome] = put(store, [given])
    assert outcome.opens
    assert outcome.id == outcome.failure_id
    with store.reading() as reading:
        [attempt] = reading.jobs.attempts("orion", "123_4")
    for name in ("event_id", "attempt", "name", "user", "team", "queue", "gpus", "gpu_type", "nodes", "submitted_at"):
        assert getattr(attempt, name) == getattr(given, name)
    for name in ("started_at", "resubmit_of", "restart_count", "clock_suspect", "received_at", "gpu_hours_lost"):
        assert getattr(attempt, name) == getattr(given, name)
    assert (attempt.ended_at, attempt.ended_at.tzinfo) == (NOON, UTC)
    assert (attempt.counted, attempt.conflicts) == (True, 0)
    assert (attempt.failure_id, attempt.side, attempt.cause) == (outcome.id, "user", "USER.1")


def test_a_successful_attempt_is_one_row_without_a_failure(store: Store) -> None:
    [outcome] = put(store, [succeeded("e1")])
    assert (outcome.kind, outcome.failure_id, outcome.opens) == ("new", None, False)
    with store.reading() as reading:
        [attempt] = reading.jobs.attempts("orion", "e1")
        assert attempt.failure_id is None
        assert reading.failures.page().items == ()


def test_no_such_job_has_no_attempts(store: Store) -> None:
    with store.reading() as reading:
        assert reading.jobs.attempts("orion", "none") == ()
        assert reading.jobs.known([]) == {}


def test_the_same_event_again_changes_nothing(store: Store) -> None:
    first = put(store, [job("e1"), succeeded("e2")])
    again = put(store, [succeeded("e2"), job("e1"), job("e3")])
    assert kinds(again) == ["duplicate", "duplicate", "new"]
    assert [outcome.id for outcome in again[:2]] == [first[1].id, first[0].id]
    assert again[1].failure_id == first[0].id
    assert not again[1].opens
    with store.reading() as reading:
        assert len(reading.jobs.attempts("orion", "e1")) == 1
        assert reading.jobs.known(["e1", "e9"]) == {"e1": b"digest of content"}


def test_the_same_key_with_other_content_is_a_counted_conflict_and_the_first_stays(store: Store) -> None:
    put(store, [job("e1", name="first")])
    other = job("e1", name="second", digest=b"other content")
    assert kinds(put(store, [other, other, job("e1")])) == ["conflict", "conflict", "duplicate"]
    with store.reading() as reading:
        [attempt] = reading.jobs.attempts("orion", "e1")
        assert reading.statistics.health(NOON).conflicts == 2
    assert (attempt.name, attempt.conflicts) == ("first", 2)


def test_repeats_within_a_batch(store: Store) -> None:
    outcomes = put(store, [job("e1"), job("e1"), job("e1", digest=b"other content"), job("e2")])
    assert kinds(outcomes) == ["new", "duplicate", "conflict", "new"]
    assert {outcome.id for outcome in outcomes[:3]} == {outcomes[0].id}
    with store.reading() as reading:
        assert [attempt.conflicts for attempt in reading.jobs.attempts("orion", "e1")] == [1]


def test_a_block_that_raises_leaves_nothing(store: Store) -> None:
    def fail() -> None:
        with store.unit_of_work() as work:
            outcomes = work.jobs.add([job("e1")])
            work.failures.add([NewFailure(outcomes[0], job("e1"), verdict())])
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        fail()
    with store.reading() as reading:
        assert reading.jobs.known(["e1"]) == {}
        assert reading.failures.page().items == ()


def test_text_that_no_database_can_hold_is_stored_approximately(store: Store) -> None:
    odd = job(
        "e\0\ud800",
        cluster="or\0ion",
        job_id="ns/\udfffjob",
        name="n\0" * 400,
        user="ü" * 5_000,
        queue="\0",
        nodes=("\0node", "\ud800" * 300),
        ended_at=datetime.min.replace(tzinfo=timezone(timedelta(hours=5))),
        started_at=datetime.max.replace(tzinfo=timezone(-timedelta(hours=5))),
    )
    assert kinds(put(store, [odd])) == ["new"]
    assert kinds(put(store, [odd])) == ["duplicate"]
    with store.reading() as reading:
        assert list(reading.jobs.known([odd.event_id])) == [odd.event_id]
        [attempt] = reading.jobs.attempts(odd.cluster, odd.job_id)
        [row] = reading.failures.page().items
    assert attempt.name is not None
    assert attempt.name.startswith("n�n�")
    assert attempt.user == "ü" * 200
    assert row.id == attempt.failure_id


def test_a_batch_of_thousands(store: Store) -> None:
    outcomes = put(store, [job(f"e{n}") for n in range(2_500)])
    assert len({outcome.id for outcome in outcomes}) == 2_500
    ids = [outcome.id for outcome in outcomes if outcome.id is not None]
    assert ids == sorted(ids)
    with store.reading() as reading:
        assert len(reading.jobs.known({f"e{n}" for n in range(3_000)})) == 2_500


def test_concurrent_writers_of_the_same_events_store_each_once(open_store: Callable[[], Store]) -> None:
    rivals = 4
    keys = [f"e{n}" for n in range(200)]
    gate = threading.Barrier(rivals)
    results: list[list[JobOutcome]] = []
    failed: list[BaseException] = []

    def compete(store: Store, order: list[str]) -> None:
        try:
            gate.wait(60)
            results.append(put(store, [job(key) for key in order]))
        except BaseException as error:  # noqa: BLE001 - handed to the test
            failed.append(error)

    orders = [keys, keys[::-1], keys[100:] + keys[:100], sorted(keys, key=hash)]
    threads = [threading.Thread(target=compete, args=(open_store(), order)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(kind for outcomes in results for kind in kinds(outcomes)) == ["duplicate"] * 600 + ["new"] * 200
    with open_store().reading() as reading:
        assert len(reading.failures.page(limit=500).items) == 200


def pod(event_id: str, minute: int, **changes: object) -> NewJob:
    began = NOON + timedelta(minutes=minute)
    return job(
        event_id,
        job_id="ml/Job/train",
        pod=f"train-{event_id}",
        started_at=began,
        ended_at=began + timedelta(minutes=4),
        **changes,
    )


def own(event_id: str, minute: int, **changes: object) -> NewJob:
    return job(event_id, job_id="ml/Job/train", started_at=NOON, ended_at=NOON + timedelta(minutes=minute), **changes)


def counted(store: Store) -> dict[str, bool]:
    with store.reading() as reading:
        return {attempt.event_id: attempt.counted for attempt in reading.jobs.attempts("orion", "ml/Job/train")}


@pytest.mark.parametrize("together", [True, False])
def test_failed_pods_and_their_controller_are_one_failure(store: Store, *, together: bool) -> None:
    rows = [
        pod("p1", 0, nodes=("gpu1",)),
        pod("p2", 5, nodes=("gpu7",)),
        own("j", 10, status="timeout", gpu_hours_lost=9.0),
    ]
    batches = [rows] if together else [[row] for row in rows]
    outcomes = [outcome for batch in batches for outcome in put(store, batch)]
    assert [outcome.opens for outcome in outcomes] == [True, False, False]
    assert {outcome.failure_id for outcome in outcomes} == {outcomes[0].id}
    assert counted(store) == {"p1": False, "p2": False, "j": True}
    with store.reading() as reading:
        [row] = reading.failures.page().items
        stats = reading.statistics.stats(NOON - timedelta(days=1), NOON + timedelta(days=1))
    assert (row.status, row.gpu_hours_lost, row.ended_at) == ("timeout", 9.0, NOON + timedelta(minutes=10))
    assert (stats.failed, stats.gpu_hours_lost, [share.failures for share in stats.by_side]) == (1, 9.0, [1])


def test_a_controller_that_arrives_before_its_pods(store: Store) -> None:
    [first] = put(store, [own("j", 10)])
    [later] = put(store, [pod("p1", 0)])
    assert (later.opens, later.failure_id) == (False, first.id)
    assert counted(store) == {"j": True, "p1": False}


def test_a_controller_whose_retry_succeeded_is_not_a_failed_job(store: Store) -> None:
    put(store, [pod("p1", 0)])
    put(store, [own("j", 10, status="succeeded", diagnosed=False, gpu_hours_lost=0.0)])
    with store.reading() as reading:
        stats = reading.statistics.stats(NOON - timedelta(days=1), NOON + timedelta(days=1))
        [row] = reading.failures.page().items
    assert (stats.finished, stats.failed, stats.by_side) == (1, 0, ())
    assert not row.counted


def test_a_recreated_controller_of_the_same_name_is_a_second_failure(store: Store) -> None:
    put(store, [pod("p1", 0), own("j1", 10)])
    outcomes = put(store, [pod("p2", 60), own("j2", 70)])
    assert [outcome.opens for outcome in outcomes] == [True, False]
    assert counted(store) == {"p1": False, "j1": True, "p2": False, "j2": True}


def test_a_key_of_another_job_is_not_counted_among_a_controller_s_pods(store: Store) -> None:
    put(store, [job("p1", job_id="elsewhere")])
    outcomes = put(store, [pod("p1", 0, digest=b"other content"), pod("p2", 1)])
    assert kinds(outcomes) == ["conflict", "new"]
    assert outcomes[1].opens
    assert counted(store) == {"p2": True}


def test_pods_of_one_controller_at_concurrent_workers_are_one_failure(open_store: Callable[[], Store]) -> None:
    gate = threading.Barrier(4)
    failed: list[BaseException] = []

    def compete(store: Store, n: int) -> None:
        try:
            gate.wait(60)
            put(store, [pod(f"p{n}-{m}", m) for m in range(5)])
        except BaseException as error:  # noqa: BLE001 - handed to the test
            failed.append(error)

    threads = [threading.Thread(target=compete, args=(open_store(), n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    store = open_store()
    assert sum(counted(store).values()) == 1
    with store.reading() as reading:
        assert len(reading.failures.page().items) == 1
