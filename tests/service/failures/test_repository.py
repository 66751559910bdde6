from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from classifiers.contracts import LogStream
from service.db.session import Store
from service.errors import NotFound
from service.failures.records import FailureFilter, NewFailure
from service.failures.repository.verdict_versions import headline
from tests.service.databases import connection_of
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON, STREAMS, job, put, succeeded, verdict


def test_a_failure_round_trips(store: Store, clock: FrozenClock) -> None:
    [outcome] = put(store, [job("e1", name="vit-g")])
    with store.reading() as reading:
        found = reading.failures.get(outcome.failure_id or 0)
    row = found.row
    assert (row.id, row.cluster, row.job_id, row.name, row.status) == (outcome.id, "orion", "e1", "vit-g", "failed")
    assert (row.side, row.cause, row.category, row.symptom, row.platform_symptom) == (
        *("user", "USER.1", "5.1", None),
        "crash",
    )
    assert (row.confidence, row.abstained, row.retry_outlook, row.decision, row.resubmit) == (
        *(0.9, False, "futile", "stop"),
        False,
    )
    assert (row.fingerprint, row.suspect_node, row.suspect_rank) == ("v1:abc", "gpu1", 0)
    assert row.headline == "FileNotFoundError: /data/train/index.json"
    assert (row.nodes, row.gpus, row.gpu_hours_lost, row.counted) == (("gpu1", "gpu2"), 4, 4.0, True)
    assert (row.version, row.source) == (1, "machine")
    assert found.verdict == verdict()
    [version] = found.versions
    assert (version.version, version.at, version.source) == (1, clock.at, "machine")
    assert (version.model, version.rules, version.policy) == ("m1", "r1", "p1")
    [stored] = found.logs
    assert (stored.attempt_id, stored.streams, stored.event) == (outcome.id, STREAMS, {"job_id": "e1"})
    assert [attempt.event_id for attempt in found.attempts] == ["e1"]


@pytest.mark.parametrize("number", [0, 1, -1, 2**63, 10**30])
def test_a_missing_failure_is_not_found(store: Store, number: int) -> None:
    with store.reading() as reading, pytest.raises(NotFound, match=str(number)):
        reading.failures.get(number)
    with store.unit_of_work() as work, pytest.raises(NotFound):
        work.failures.revise(number, verdict())


def test_only_an_attempt_that_opens_a_failure_can_be_added(store: Store) -> None:
    given = succeeded("e1")
    [outcome] = put(store, [given])
    with store.unit_of_work() as work, pytest.raises(ValueError, match="does not open a failure"):
        work.failures.add([NewFailure(outcome, given, verdict())])


def test_a_revision_is_a_new_version_and_becomes_current(store: Store, clock: FrozenClock) -> None:
    [outcome] = put(store, [job("e1")])
    number = outcome.failure_id or 0
    clock.sleep(60)
    later = verdict(side="hardware", cause="HW.GPU.1", fingerprint="v1:xid", model="m2", suspect=None)
    arrived = (LogStream("Xid 79", node="gpu1"),)
    with store.unit_of_work() as work:
        assert work.failures.revise(number, later, attempt_id=number, streams=arrived) == 2
    with store.reading() as reading:
        found = reading.failures.get(number)
    assert (found.row.side, found.row.cause, found.row.version) == ("hardware", "HW.GPU.1", 2)
    assert (found.row.suspect_node, found.row.suspect_rank) == (None, None)
    assert found.verdict == later
    assert [(one.version, one.model, one.at) for one in found.versions] == [
        (2, "m2", clock.at),
        (1, "m1", clock.at - timedelta(seconds=60)),
    ]
    assert [(stored.streams, stored.event) for stored in found.logs] == [(arrived, {"job_id": "e1"})]


def test_a_machine_never_overrules_a_person(store: Store) -> None:
    [outcome] = put(store, [job("e1")])
    number = outcome.failure_id or 0
    with store.unit_of_work() as work:
        assert work.failures.revise(number, verdict(side="system", cause="SYS.1"), source="person") == 2
        assert work.failures.revise(number, verdict(side="hardware"), attempt_id=number, streams=()) is None
        assert work.failures.revise(number, verdict(side="system", cause="SYS.2"), source="person") == 3
    with store.reading() as reading:
        found = reading.failures.get(number)
    assert (found.row.cause, found.row.source, found.row.version) == ("SYS.2", "person", 3)
    assert [one.source for one in found.versions] == ["person", "person", "machine"]
    assert [stored.streams for stored in found.logs] == [()]


def test_logs_and_nodes_of_another_attempt_are_stored_with_the_failure(store: Store) -> None:
    [first] = put(store, [job("p1", job_id="ml/Job/a", pod="a-1", nodes=("gpu1",))])
    [second] = put(store, [job("p2", job_id="ml/Job/a", pod="a-2", nodes=("gpu9",))])
    number = first.failure_id or 0
    with store.unit_of_work() as work:
        work.failures.attach(number, second.id or 0, STREAMS, {"job_id": "p2"})
        work.failures.attach(number, second.id or 0, (), {"job_id": "again"})
    with store.reading() as reading:
        found = reading.failures.get(number)
        stored = [(one.attempt_id, one.streams, one.event) for one in found.logs]
        assert stored == [(first.id, STREAMS, {"job_id": "ml/Job/a"}), (second.id, (), {"job_id": "again"})]
        assert [attempt.event_id for attempt in found.attempts] == ["p1", "p2"]
        assert [row.id for row in reading.failures.page(FailureFilter(node="gpu9")).items] == [number]


LINES: list[tuple[dict[str, Any], str]] = [
    ({"evidence": [{"text": "cascade", "role": "cascade"}]}, "cascade"),
    ({"evidence": [], "explanation": "No log."}, "No log."),
    ({}, ""),
    ({"evidence": [{"text": "x\0" * 400, "role": "initiating"}]}, "x�" * 150),
]


@pytest.mark.parametrize(("body", "expected"), LINES)
def test_the_headline_is_the_most_significant_line(body: dict[str, Any], expected: str) -> None:
    assert headline(body) == expected


def test_hostile_text_is_kept_readable(store: Store) -> None:
    streams = (LogStream("\0<script>\ud800\x1b[31m" + "é" * 100_000, node="\0"),)
    given = job("e1")
    with store.unit_of_work() as work:
        outcomes = work.jobs.add([given])
        body = verdict(explanation="\ud800", weight=2**70, evidence=[{"text": "\ud800", "role": "initiating"}])
        work.failures.add([NewFailure(outcomes[0], given, body, streams, {"n": float("nan"), "s": "\udfff"})])
    with store.reading() as reading:
        found = reading.failures.get(outcomes[0].failure_id or 0)
    assert found.logs[0].streams[0].text.startswith("\0<script>?\x1b[31mé")
    assert found.row.headline == "?"
    assert found.verdict is not None
    assert found.verdict["weight"] == str(2**70)


def test_two_revisions_at_once_are_two_versions(store: Store) -> None:
    [outcome] = put(store, [job("e1", ended_at=NOON)])
    for _ in range(2):
        with store.unit_of_work() as work:
            work.failures.revise(outcome.failure_id or 0, verdict())
    with store.reading() as reading:
        found = reading.failures.get(outcome.failure_id or 0)
    assert [one.version for one in found.versions] == [3, 2, 1]


def test_many_failures_are_read_with_as_many_queries_as_one(store: Store) -> None:
    put(store, [job(f"e{number}") for number in range(5)])
    asked: list[str] = []
    with store.reading() as reading:
        ids = [row.id for row in reading.failures.page().items]
        connection = connection_of(reading.failures)
        event.listen(connection, "before_cursor_execute", lambda *given: asked.append(given[2]))
        one = reading.failures.get(ids[0])
        of_one = len(asked)
        found = reading.failures.details([*ids, 10**9])
    assert len(asked) == 2 * of_one
    assert sorted(found) == sorted(ids)
    assert replace(found[ids[0]], logs=()) == replace(one, logs=())
    assert [kept.streams for kept in found[ids[0]].logs] == [kept.streams for kept in one.logs]


def test_new_versions_of_many_failures_leave_out_those_that_changed_meanwhile(store: Store) -> None:
    outcomes = put(store, [job(f"e{number}") for number in range(4)])
    first, second, third, fourth = (one.failure_id or 0 for one in outcomes)
    later = verdict(side="hardware", cause="HW.GPU.1", fingerprint="v1:xid")
    with store.unit_of_work() as work:
        work.failures.revise(second, verdict(side="system", cause="SYS.1"))
        work.failures.revise(third, verdict(side="system", cause="SYS.1"), source="person")
        new = {first: (1, later), second: (1, later), third: (2, later), fourth: (1, later), 10**9: (1, later)}
        assert work.failures.revise_unchanged(new) == [first, fourth]
        assert work.failures.revise_unchanged({}) == []
    with store.reading() as reading:
        found = reading.failures.details([first, second, third, fourth])
        hardware = reading.failures.page(FailureFilter(side="hardware", q="index.json")).items
    assert [(found[one].row.cause, found[one].row.version) for one in (first, second, third, fourth)] == [
        ("HW.GPU.1", 2),
        ("SYS.1", 2),
        ("SYS.1", 2),
        ("HW.GPU.1", 2),
    ]
    assert found[first].verdict == later
    assert {row.id for row in hardware} == {first, fourth}, "the index of words has the new evidence"
