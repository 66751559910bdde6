"""Reported fixes of failures, on both databases."""

from datetime import timedelta

from service.db.session import Store
from service.fixes.repository import FixCount
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON, job, put, verdict

SINCE, UNTIL = NOON - timedelta(days=3), NOON + timedelta(days=4)


def numbers(store: Store, *names: str, fingerprint: str = "1:a", cause: str = "USER.1") -> list[int]:
    return [
        one.failure_id or 0 for one in put(store, [job(name) for name in names], fingerprint=fingerprint, cause=cause)
    ]


def say(store: Store, failure_id: int, code: str | None, who: str = "ana") -> None:
    with store.unit_of_work() as work:
        work.applied_fixes.report(failure_id, code, who)


def test_the_latest_report_counts_and_can_be_removed(store: Store, clock: FrozenClock) -> None:
    [number] = numbers(store, "a")
    say(store, number, "M8")
    clock.at += timedelta(minutes=1)
    say(store, number, "M2", "bo")
    with store.reading() as reading:
        found = reading.applied_fixes.of(number)
        assert found is not None
        assert (found.code, found.who, found.at) == ("M2", "bo", clock.at)
        assert reading.applied_fixes.counts(SINCE) == [FixCount("orion", "USER.1", "M2", 1)]
    say(store, number, None)
    say(store, number, None)
    with store.reading() as reading:
        assert reading.applied_fixes.of(number) is None
        assert reading.applied_fixes.counts(SINCE) == []


def test_counts_follow_the_current_verdict_and_leave_out_old_reports(store: Store, clock: FrozenClock) -> None:
    first, second = numbers(store, "a", "b")
    say(store, first, "M8")
    clock.at += timedelta(days=30)
    say(store, second, "M8")
    with store.unit_of_work() as work:
        work.failures.revise(second, verdict(side="hardware", cause="HW.GPU.1"), source="person")
    with store.reading() as reading:
        both = sorted((one.cause, one.many) for one in reading.applied_fixes.counts(SINCE))
        lately = [(one.cause, one.many) for one in reading.applied_fixes.counts(clock.at - timedelta(days=1))]
    assert both == [("HW.GPU.1", 1), ("USER.1", 1)]
    assert lately == [("HW.GPU.1", 1)]


def test_a_week_counts_its_own_failures(store: Store) -> None:
    inside, also = numbers(store, "a", "b")
    [old] = [
        one.failure_id or 0 for one in put(store, [job("old", ended_at=SINCE - timedelta(hours=1))], fingerprint="1:a")
    ]
    for number, code in ((inside, "M8"), (also, "M8"), (old, "M2")):
        say(store, number, code)
    with store.reading() as reading:
        assert reading.applied_fixes.between(SINCE, UNTIL) == {"M8": 2}


def test_the_nearest_is_of_the_same_kind_or_else_of_the_same_cause(store: Store) -> None:
    [kind] = numbers(store, "a", fingerprint="1:a")
    [cause] = numbers(store, "b", fingerprint="1:b")
    [asked] = numbers(store, "c", fingerprint="1:a")
    say(store, asked, "M1")  # its own is not its nearest
    with store.reading() as reading:
        row = reading.failures.get(asked).row
        assert reading.applied_fixes.nearest(row) is None
    say(store, cause, "M3")
    with store.reading() as reading:
        found = reading.applied_fixes.nearest(row)
    assert found is not None
    assert (found.by.failure_id, found.by.code, found.alike, found.job_id) == (cause, "M3", False, "b")
    say(store, kind, "M8")
    with store.reading() as reading:
        found = reading.applied_fixes.nearest(row)
    assert found is not None
    assert (found.by.failure_id, found.by.code, found.alike, found.cluster) == (kind, "M8", True, "orion")


def test_a_report_is_deleted_with_its_failure(store: Store) -> None:
    [number] = numbers(store, "a")
    say(store, number, "M8")
    store.purge(rows_before=NOON + timedelta(days=1), logs_before=None, verdicts_before=None, done_before=None)
    with store.reading() as reading:
        assert reading.applied_fixes.of(number) is None
