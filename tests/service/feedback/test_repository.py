from datetime import timedelta
from typing import Any

from service.db.session import Store
from service.feedback.records import Labels, NewFeedback, SavedView
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON, job, put


def say(store: Store, number: int, who: str, kind: Any = "correct", **labels: str) -> Any:
    with store.unit_of_work() as work:
        return work.feedback.add(NewFeedback(number, who, kind, 1, "user", "USER.1", Labels(**labels), note="why\0"))


def test_every_feedback_is_kept_and_the_last_one_counts(store: Store) -> None:
    [outcome] = put(store, [job("e1")])
    number = outcome.failure_id or 0
    say(store, number, "ana", side="system", cause="SYS.5")
    _, label = say(store, number, "ana", side="user", cause="USER.4", retry="futile")
    assert (label.labels.cause, label.people, label.disputed) == ("USER.4", 1, False)
    with store.reading() as reading:
        words = reading.feedback.of(number)
        assert reading.feedback.label(number) == label
    assert [output.labels.cause for output in words] == ["SYS.5", "USER.4"]
    assert words[0].note == "why\ufffd"


def test_disagreement_and_contests_are_listed_until_settled(store: Store, clock: FrozenClock) -> None:
    numbers = [outcome.failure_id or 0 for outcome in put(store, [job("e1"), job("e2"), job("e3")])]
    say(store, numbers[0], "ana", side="user", cause="USER.1")
    assert say(store, numbers[0], "bo", side="user", cause="USER.4")[1].disputed
    clock.at += timedelta(seconds=1)
    assert say(store, numbers[1], "owner", "contest")[1].contested
    say(store, numbers[2], "ana", side="user", cause="USER.1")
    with store.reading() as reading:
        open_ones = reading.feedback.labelled(limit=1, open_only=True)
        rest = reading.feedback.labelled(limit=1, open_only=True, cursor=open_ones.next_cursor)
        assert [one.failure_id for one in (*open_ones.items, *rest.items)] == [numbers[1], numbers[0]]
        assert rest.next_cursor is None
        assert reading.feedback.contests(NOON) == {"USER.1": 1}
        assert len(reading.feedback.labelled().items) == 3
    assert not say(store, numbers[0], "ana", side="user", cause="USER.4")[1].disputed
    assert not say(store, numbers[1], "ana", "confirm", side="user", cause="USER.1")[1].contested
    with store.reading() as reading:
        assert reading.feedback.labelled(open_only=True).items == ()


def test_a_protected_label_stays_and_dissent_shows(store: Store) -> None:
    [outcome] = put(store, [job("e1")])
    number = outcome.failure_id or 0
    with store.unit_of_work() as work:
        assert not work.feedback.protect(number, golden=True)
    say(store, number, "ana", side="user", cause="USER.1")
    with store.unit_of_work() as work:
        assert work.feedback.protect(number, golden=True)
    _, label = say(store, number, "bo", side="system", cause="SYS.1")
    assert (label.labels.cause, label.who, label.golden, label.disputed) == ("USER.1", "ana", True, True)


def test_a_sample_is_drawn_once_from_its_week_alone(store: Store) -> None:
    inside = [job(f"in{n}", ended_at=NOON - timedelta(hours=n)) for n in range(10)]
    put(store, [*inside, job("before", ended_at=NOON - timedelta(days=9)), job("after", ended_at=NOON)])
    with store.unit_of_work() as work:
        assert work.feedback.draw("2026-W47", NOON - timedelta(days=7), NOON, 4) == 4
        assert work.feedback.draw("2026-W47", NOON - timedelta(days=7), NOON, 4) == 0
        sample = work.feedback.audit("2026-W47")
        assert work.feedback.audit_weeks() == ("2026-W47",)
        rows = work.failures.rows([one.failure_id for one in sample])
    assert all(row.job_id.startswith("in") and row.ended_at < NOON for row in rows.values())
    number, _ = say(store, sample[0].failure_id, "ana", "audit", side="user", cause="USER.1")
    with store.unit_of_work() as work:
        assert work.feedback.audited("2026-W47", sample[0].failure_id, number)
        assert not work.feedback.audited("2026-W47", sample[0].failure_id, number), "once"
        assert [one.right for one in work.feedback.audit("2026-W47")].count(True) == 1


def test_views_are_kept_by_name_for_one_person(store: Store) -> None:
    with store.unit_of_work() as work:
        work.feedback.save_view("ana", SavedView("b", "/failures", "side=user"))
        work.feedback.save_view("ana", SavedView("a", "/failures", "q=%C3%A9"))
        work.feedback.save_view("ana", SavedView("b", "/failures", "side=system"))
        work.feedback.save_view("bo", SavedView("b", "/failures", ""))
    with store.reading() as reading:
        assert [(view.name, view.query) for view in reading.feedback.views("ana", "/failures")] == [
            ("a", "q=%C3%A9"),
            ("b", "side=system"),
        ]
        assert reading.feedback.views("ana", "/groups") == ()


def test_feedback_is_deleted_with_its_failure(store: Store) -> None:
    [outcome] = put(store, [job("e1")])
    say(store, outcome.failure_id or 0, "ana", side="user", cause="USER.1")
    store.purge(rows_before=NOON + timedelta(days=1))
    with store.reading() as reading:
        assert reading.feedback.labelled().items == ()
        assert reading.feedback.of(outcome.failure_id or 0) == ()
