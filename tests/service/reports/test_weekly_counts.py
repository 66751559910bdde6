"""Counts of the weekly report, on both databases."""

from datetime import timedelta
from typing import Literal

from service.db.session import Store
from service.deliveries.records import OutboxMessage
from service.feedback.records import FeedbackKind, Labels, NewFeedback
from service.incidents.records import NewIncident
from service.reports.records import EVERYTHING, PublishedReport
from service.reports.repository.weekly_action_counts import AutomationCounts
from service.statistics.records import Scope
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON, job, put, succeeded, verdict

SINCE, UNTIL = NOON - timedelta(days=3), NOON + timedelta(days=4)


def test_counts_of_a_period_by_side_with_squares_for_the_intervals(store: Store) -> None:
    put(store, [job("a", gpu_hours_lost=3.0), job("b", gpu_hours_lost=4.0), succeeded("c")])
    put(store, [job("old", ended_at=SINCE - timedelta(hours=1)), job("d", gpu_hours_lost=1.0)], abstained=True)
    with store.reading() as reading:
        counts = reading.weekly_counts.counts(SINCE, UNTIL)
    assert (counts.finished, counts.failed.failures, counts.failed.gpu_hours) == (4, 3, 8.0)
    assert counts.failed.squares == 26.0
    assert counts.by_side["unknown"].failures == 1
    assert sum(one.failures for one in counts.by_side.values()) == 3


def test_groups_have_first_failures_and_numbers_of_users(store: Store) -> None:
    put(store, [job("old", ended_at=SINCE - timedelta(days=20))], fingerprint="1:back")
    put(store, [job("a", user="ana", gpu_hours_lost=5.0), job("b", user="bo")], fingerprint="1:back")
    put(store, [job("c", gpu_hours_lost=10.0)], fingerprint="1:new")
    with store.reading() as reading:
        new, back = reading.weekly_counts.groups(SINCE, UNTIL, limit=5)
        none = reading.weekly_counts.groups(SINCE, UNTIL, limit=5, category=["XX.1"])
    assert (new.fingerprint, new.last_before, new.amount.gpu_hours) == ("1:new", None, 10.0)
    assert (back.fingerprint, back.amount.failures, back.users) == ("1:back", 2, 2)
    assert back.last_before == SINCE - timedelta(days=20)
    assert none == ()


def test_hours_without_any_job_are_listed(store: Store) -> None:
    put(store, [job("a"), succeeded("b", ended_at=NOON + timedelta(hours=2, minutes=5))])
    with store.reading() as reading:
        silent = reading.weekly_counts.silent_hours(NOON, NOON + timedelta(hours=4))
    assert silent == (NOON + timedelta(hours=1), NOON + timedelta(hours=3))


def test_trust_and_time_to_verdict(store: Store) -> None:
    first, _ = put(store, [job("a"), job("b")])
    assert first.failure_id is not None
    with store.unit_of_work() as work:
        work.failures.revise(first.failure_id, verdict(side="user"), source="person")
    with store.reading() as reading:
        trust = reading.weekly_counts.trust(SINCE, UNTIL)
        seconds = reading.weekly_counts.seconds_to_verdict(SINCE, UNTIL)
    assert (trust.diagnosed, trust.revised, trust.corrected) == (2, 1, 1)
    assert len(seconds) == 2
    assert seconds == sorted(seconds)


def test_judgements_that_were_withdrawn_are_no_corrections(store: Store) -> None:
    first, second = (one.failure_id for one in put(store, [job("a"), job("b")]))
    assert first is not None
    assert second is not None

    def judge(failure_id: int, version: int, kind: FeedbackKind, side: str) -> int:
        with store.unit_of_work() as work:
            labels = Labels(side, f"{side.upper()}.1")
            given = NewFeedback(failure_id, "ana", kind, version, "user", "USER.1", labels)
            work.failures.revise(failure_id, verdict(side=side), source="person")
            return work.feedback.add(given)[0]

    def withdraw(failure_id: int, number: int, source: Literal["machine", "person"]) -> None:
        with store.unit_of_work() as work:
            work.feedback.withdraw_one(failure_id, number, "ana")
            work.failures.revise(failure_id, verdict(), source=source, over_person=True)

    judge(first, 1, "confirm", "user")
    withdraw(first, judge(first, 2, "correct", "system"), "person")
    withdraw(second, judge(second, 1, "correct", "system"), "machine")
    with store.reading() as reading:
        trust = reading.weekly_counts.trust(SINCE, UNTIL)
    assert (trust.diagnosed, trust.revised, trust.corrected) == (2, 0, 0)
    with store.unit_of_work() as work:
        work.failures.revise(second, verdict(cause="USER.2"))
    with store.reading() as reading:
        trust = reading.weekly_counts.trust(SINCE, UNTIL)
    assert (trust.revised, trust.corrected) == (1, 0), "the machine revised it"


def test_a_group_has_the_side_of_most_of_its_failures_of_the_week(store: Store) -> None:
    put(store, [job(f"old{n}", ended_at=SINCE - timedelta(days=1)) for n in range(9)], side="user", cause="USER.1")
    put(store, [job(f"a{n}") for n in range(3)], side="system", cause="SYS.5")
    put(store, [job("b")], side="hardware", cause="HW.NODE.1")
    with store.reading() as reading:
        [found] = reading.weekly_counts.groups(SINCE, UNTIL, limit=5)
    assert (found.side, found.cause, found.amount.failures) == ("system", "SYS.5", 4)


def test_actions_of_an_empty_week_are_zero(store: Store) -> None:
    with store.reading() as reading:
        done = reading.weekly_action_counts.automated(SINCE, UNTIL)
        assert done == AutomationCounts({}, {}, 0, 0, 0, 0)
        assert reading.weekly_action_counts.incidents(SINCE, UNTIL) == ()
        assert reading.weekly_action_counts.contested(SINCE, UNTIL) == 0
        assert reading.weekly_action_counts.lost_on("gpu018", "orion", SINCE, UNTIL) == (0, 0.0)


def test_only_failures_that_suspect_a_node_are_attributed_to_it(store: Store) -> None:
    put(store, [job("a", gpu_hours_lost=2.0)], side="user")
    put(store, [job("b", gpu_hours_lost=3.0)], side="hardware", abstained=True)
    put(store, [job("c", gpu_hours_lost=5.0)], side="hardware")
    with store.reading() as reading:
        assert reading.weekly_action_counts.lost_on("gpu1", "orion", SINCE, UNTIL) == (1, 5.0)


def test_one_holder_performs_a_task_and_a_dead_one_is_replaced(store: Store) -> None:
    lease = timedelta(minutes=5)
    with store.unit_of_work() as work:
        assert work.task_leases.take("report", "a", due="2026-W47", lease=lease)
        assert not work.task_leases.take("report", "b", due="2026-W47", lease=lease)
        assert not work.task_leases.done("report", "b", due="2026-W47")
        assert work.task_leases.done("report", "a", due="2026-W47")
        assert not work.task_leases.take("report", "b", due="2026-W47", lease=lease)
        assert work.task_leases.take("report", "b", due="2026-W48", lease=timedelta(0))
        assert work.task_leases.take("report", "c", due="2026-W48", lease=lease)
        assert work.task_leases.last("report") == "2026-W47"


def test_a_turn_and_a_lease_of_a_clock_that_was_years_ahead_keep_no_task_from_running(
    store: Store, clock: FrozenClock
) -> None:
    lease = timedelta(minutes=5)
    clock.at += timedelta(days=3_000)
    with store.unit_of_work() as work:
        assert work.task_leases.take("report", "a", due="2035-W06", lease=lease)
        assert work.task_leases.done("report", "a", due="2035-W06")
        assert work.task_leases.take("report", "a", due="2035-W07", lease=lease)  # and it is killed
    clock.at -= timedelta(days=3_000)
    with store.unit_of_work() as work:
        assert work.task_leases.take("report", "b", due="2026-W47", lease=lease)
        assert not work.task_leases.take("report", "c", due="2026-W47", lease=lease)


def test_a_published_version_is_stored_once(store: Store) -> None:
    with store.unit_of_work() as work:
        assert work.reports.add("2026-W47", 1, "ana", {"a": 1})
        assert not work.reports.add("2026-W47", 1, "bo", {"a": 2})
        assert work.reports.add("2026-W47", 2, "bo", {"a": 3})
        work.outbox.add([OutboxMessage("report.published", "report/2026-W47", {})])
    with store.reading() as reading:
        first, latest = reading.reports.get("2026-W47", 1), reading.reports.latest("2026-W47")
        assert first is not None
        assert latest is not None
        assert (first.body, latest.body, latest.version) == ({"a": 1}, {"a": 3}, 2)
        assert [(one.week, one.version) for one in reading.reports.list(limit=5)] == [("2026-W47", 2)]


def test_the_reports_of_each_scope_have_their_own_versions(store: Store) -> None:
    scopes = (Scope("orion"), Scope(team="vision"), Scope("orion", "vision"))
    with store.unit_of_work() as work:
        for week in ("2026-W46", "2026-W47"):
            assert work.reports.add(week, 1, "ana", {"of": "all"})
            for scope in scopes:
                assert work.reports.add(week, 1, "ana", {"of": [scope.cluster, scope.team]}, scope)
                assert not work.reports.add(week, 1, "bo", {}, scope)
        assert work.reports.add("2026-W47", 2, "ana", {"of": "later"}, scopes[0])
    with store.reading() as reading:
        stored = reading.reports
        latest = [stored.latest("2026-W47", scope) for scope in (EVERYTHING, *scopes, Scope("vision"))]
        assert [one and one.body["of"] for one in latest] == [
            "all",
            "later",
            [None, "vision"],
            ["orion", "vision"],
            None,
        ]
        assert [number for number, _ in stored.versions("2026-W47", scopes[0])] == [2, 1]
        first = stored.get("2026-W47", 1, scopes[0])
        assert first is not None
        assert first.body == {"of": ["orion", None]}
        assert [(one.week, one.version) for one in stored.list(limit=5, scope=scopes[0])] == [
            ("2026-W47", 2),
            ("2026-W46", 1),
        ]
        assert [one.week for one in stored.list(limit=5, before="2026-W47", scope=scopes[1])] == ["2026-W46"]
        found: list[PublishedReport] = []
        cursor = None
        while True:
            page = stored.scoped(limit=2, cursor=cursor)
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
    assert [one.week for one in found] == ["2026-W47"] * 3 + ["2026-W46"] * 3
    assert {one.scope for one in found[:3]} == set(scopes)
    assert {one.scope: one.version for one in found[:3]}[scopes[0]] == 2


def test_merged_fingerprints_are_one_group_and_resolved_ones_are_marked(store: Store) -> None:
    put(store, [job("old", ended_at=SINCE - timedelta(days=20))], fingerprint="1:b")
    put(store, [job("a", user="ana", gpu_hours_lost=5.0)], fingerprint="1:a")
    put(store, [job("b", user="ana", gpu_hours_lost=2.0), job("c", user="bo")], fingerprint="1:b")
    put(store, [job("d", gpu_hours_lost=1.0)], fingerprint="1:c")
    with store.unit_of_work() as work:
        work.groups.fold()
        ids = work.groups.of(["1:a", "1:b", "1:c"])
        work.groups.move(["1:b"], ids["1:a"])
        work.groups.change(ids["1:c"], state="resolved", resolved_at=NOON + timedelta(hours=1))
    with store.reading() as reading:
        merged, resolved = reading.weekly_counts.groups(SINCE, UNTIL, limit=5)
    assert (merged.amount.failures, merged.amount.gpu_hours, merged.users) == (3, 11.0, 2)
    assert {merged.fingerprint, *merged.merged} == {"1:a", "1:b"}
    assert merged.last_before == SINCE - timedelta(days=20)
    assert (merged.resolved, resolved.resolved, resolved.returned) == (False, True, False)


def test_a_resolved_group_that_fails_again_has_returned(store: Store) -> None:
    put(store, [job("old", ended_at=SINCE - timedelta(days=2))], fingerprint="1:a")
    put(store, [job("a")], fingerprint="1:a")
    with store.unit_of_work() as work:
        work.groups.fold()
        [group_id] = work.groups.of(["1:a"]).values()
        work.groups.change(group_id, state="regressed", resolved_at=SINCE - timedelta(days=1))
    with store.reading() as reading:
        [found] = reading.weekly_counts.groups(SINCE, UNTIL, limit=5)
    assert (found.resolved, found.returned) == (False, True)


def test_one_job_that_fails_four_times_is_one_job_of_an_incident(store: Store) -> None:
    four = put(store, [job(f"a{number}", job_id="1", attempt=number) for number in range(4)])
    [other] = put(store, [job("b", job_id="2")])
    failed = {one.failure_id: (NOON, "ana") for one in (*four, other) if one.failure_id is not None}
    with store.unit_of_work() as work:
        incident, _ = work.incidents.open(
            NewIncident(
                "file_system:/scratch", "file_system", "/scratch", "orion", "SYS.1", "/scratch unreachable", "ana", None
            )
        )
        work.incidents.add_failures(incident.id, failed)
    with store.reading() as reading:
        [shown] = reading.weekly_action_counts.incidents(SINCE, NOON + timedelta(days=900))
    assert len(failed) == 5
    assert shown.jobs == 2


def test_failures_of_the_user_and_undecided_ones_are_no_reason_to_test_a_node(store: Store) -> None:
    put(store, [job("a", gpu_hours_lost=2.0)], side="user", fingerprint="1:a")
    put(store, [job("b", gpu_hours_lost=3.0)], side="hardware", abstained=True, fingerprint="1:b")
    put(store, [job("c", gpu_hours_lost=5.0)], side="hardware", fingerprint="1:c")
    with store.reading() as reading:
        cells = list(reading.weekly_counts.cells(SINCE, UNTIL))
        attributed = reading.weekly_action_counts.lost_on("gpu1", "orion", SINCE, UNTIL)
    assert sorted((one.fingerprint, one.suspect_node) for one in cells if one.suspect_node) == [("1:c", "gpu1")]
    assert sum(one.lost for one in cells) == 10.0
    assert attributed == (1, sum(one.lost for one in cells if one.suspect_node == "gpu1"))
