from collections.abc import Callable, Mapping
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import select

from service.db.session import Store
from service.feedback.records import FeedbackKind, Labels, NewFeedback
from service.feedback.repository import audit_samples
from service.feedback.repository.audit_samples import allocated
from service.feedback.tables import feedback
from tests.service.databases import engine_of
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


@pytest.mark.parametrize("kind", ["contest", "correct"])
def test_a_label_counts_after_hundreds_of_entries(store: Store, kind: str) -> None:
    [outcome] = put(store, [job("e1")])
    number = outcome.failure_id or 0
    say(store, number, "bo", side="user", cause="USER.4")
    for _ in range(201):
        say(store, number, "mallory", kind, side="hardware", cause="HW.GPU.1")
    _, label = say(store, number, "ana", side="user", cause="USER.4")
    assert (label.labels.cause, label.contested) == ("USER.4", False)
    assert (label.people, label.disputed) == ((2, False) if kind == "contest" else (3, True))
    with store.reading() as reading:
        shown = reading.feedback.of(number)
    assert [(one.who, one.labels.cause) for one in (shown[0], shown[-1])] == [("bo", "USER.4"), ("ana", "USER.4")]


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
        assert work.audit_samples.draw("2026-W47", NOON - timedelta(days=7), NOON, 4) == 4
        assert work.audit_samples.draw("2026-W47", NOON - timedelta(days=7), NOON, 4) == 0
        sample = work.audit_samples.audit("2026-W47")
        assert work.audit_samples.audit_weeks() == ("2026-W47",)
        rows = work.failures.rows([one.failure_id for one in sample])
    assert all(row.job_id.startswith("in") and row.ended_at < NOON for row in rows.values())
    number, _ = say(store, sample[0].failure_id, "ana", "audit", side="user", cause="USER.1")
    with store.unit_of_work() as work:
        assert work.audit_samples.audited("2026-W47", sample[0].failure_id, number)
        assert not work.audit_samples.audited("2026-W47", sample[0].failure_id, number), "once"
        assert [one.right for one in work.audit_samples.audit("2026-W47")].count(True) == 1


def test_processes_that_draw_at_the_same_time_draw_one_sample(
    open_store: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = open_store(), open_store()
    put(store, [job(f"in{n}", ended_at=NOON - timedelta(hours=n + 1)) for n in range(30)])

    def draw(there: Store) -> int:
        with there.unit_of_work() as work:
            return work.audit_samples.draw("2026-W47", NOON - timedelta(days=7), NOON, 10)

    second = Thread(target=draw, args=(other,))

    def while_the_other_begins(populations: Mapping[str, int], size: int) -> dict[str, int]:
        if second.ident is None:
            second.start()
            second.join(0.5)
        return allocated(populations, size)

    monkeypatch.setattr(audit_samples, "allocated", while_the_other_begins)
    draw(store)
    second.join(30)
    with store.reading() as reading:
        assert len(reading.audit_samples.audit("2026-W47")) == 10


def test_a_verdict_that_a_person_corrected_before_the_audit_counts_as_the_machine_s_error(store: Store) -> None:
    outcomes = put(store, [job(f"in{n}", ended_at=NOON - timedelta(hours=n + 1)) for n in range(6)])
    number = outcomes[0].failure_id or 0
    with store.unit_of_work() as work:
        body = dict(work.failures.get(number).verdict or {})
        corrected = {"user": ("system", "SYS.1")}.get(body["side"], ("user", "USER.1"))
        work.failures.revise(number, body | {"side": corrected[0], "cause": corrected[1]}, source="person")
        assert work.audit_samples.draw("2026-W47", NOON - timedelta(days=7), NOON, 6) == 6
    audit(store, number, side=corrected[0], cause=corrected[1])
    with store.reading() as reading:
        [judged] = [one for one in reading.audit_samples.audit_results(["2026-W47"]) if one.judged]
        [shown] = [one for one in reading.audit_samples.audit("2026-W47") if one.feedback_id is not None]
    assert (judged.stratum, judged.population, judged.side_right, shown.right) == ("judged", 1, False, False)


@pytest.mark.parametrize("one", [True, False])
def test_an_audit_whose_judgement_is_withdrawn_is_open_again(store: Store, one: bool) -> None:
    outcomes = put(store, [job(f"in{n}", ended_at=NOON - timedelta(hours=n + 1)) for n in range(2)])
    first, second = (outcome.failure_id or 0 for outcome in outcomes)
    with store.unit_of_work() as work:
        assert work.audit_samples.draw("2026-W47", NOON - timedelta(days=7), NOON, 2) == 2
    audit(store, first, side="user", cause="USER.1")
    audit(store, second, side="user", cause="USER.1")
    with store.unit_of_work() as work:
        if one:
            work.feedback.withdraw_one(first, work.feedback.of(first)[-1].id, "admin")
        else:
            work.feedback.withdraw(first, "ana", NOON - timedelta(days=7), "admin")
    with store.reading() as reading:
        shown = {row.failure_id: row.feedback_id is not None for row in reading.audit_samples.audit("2026-W47")}
        judged = [row.judged for row in reading.audit_samples.audit_results(["2026-W47"])]
    assert shown == {first: False, second: True}
    assert sorted(judged) == [False, True]
    audit(store, first, side="user", cause="USER.1")


def test_a_person_who_cannot_tell_gives_no_label(store: Store) -> None:
    [outcome] = put(store, [job("in", ended_at=NOON - timedelta(hours=1))])
    number = outcome.failure_id or 0
    with store.unit_of_work() as work:
        work.audit_samples.draw("2026-W47", NOON - timedelta(days=7), NOON, 6)
    audit(store, number, kind="unsure")
    with store.reading() as reading:
        [shown] = reading.audit_samples.audit("2026-W47")
        assert (shown.unsure, shown.right) == (True, None)
        assert reading.feedback.label(number) is None


def test_each_stratum_is_drawn_and_large_ones_in_proportion() -> None:
    assert allocated({"user": 900, "hardware": 90, "system": 9, "judged": 1}, 40) == {
        "hardware": 4,
        "judged": 1,
        "system": 4,
        "user": 31,
    }
    assert allocated({"user": 3}, 40) == {"user": 3}
    assert allocated({}, 40) == {}


def audit(store: Store, number: int, kind: FeedbackKind = "audit", **labels: str) -> None:
    given, _ = say(store, number, "ana", kind, **labels)
    with store.unit_of_work() as work:
        assert work.audit_samples.audited("2026-W47", number, given)


def test_feedback_is_deleted_with_its_failure(store: Store) -> None:
    [outcome] = put(store, [job("e1")])
    say(store, outcome.failure_id or 0, "ana", side="user", cause="USER.1")
    store.purge(rows_before=NOON + timedelta(days=1))
    with store.reading() as reading:
        assert reading.feedback.labelled().items == ()
        assert reading.feedback.of(outcome.failure_id or 0) == ()


def test_an_audited_failure_stands_for_those_of_its_stratum(store: Store) -> None:
    put(store, [job(f"in{n}", ended_at=NOON - timedelta(hours=n + 1)) for n in range(12)])
    with store.unit_of_work() as work:
        assert work.audit_samples.draw("2026-W47", NOON - timedelta(days=7), NOON, 6) == 6
        drawn = [one.failure_id for one in work.audit_samples.audit("2026-W47")]
    for number in drawn[:3]:
        audit(store, number, side="user", cause="USER.1")
    audit(store, drawn[3], kind="unsure")
    with store.reading() as reading:
        assert reading.audit_samples.weights() == dict.fromkeys(drawn[:3], 4.0)


def test_strata_of_a_team_are_weighted_as_all_failures_of_the_team(store: Store) -> None:
    teams = ["nlp"] * 8 + ["vision"] * 32
    outcomes = put(
        store, [job(f"in{n}", team=team, ended_at=NOON - timedelta(hours=n + 1)) for n, team in enumerate(teams)]
    )
    judged = [outcome.failure_id or 0 for outcome in outcomes[:2] + outcomes[8:10]]
    with store.unit_of_work() as work:
        for number in judged:
            work.failures.revise(number, dict(work.failures.get(number).verdict or {}), source="person")
        work.audit_samples.draw("2026-W47", NOON - timedelta(days=7), NOON, 22)
        found = work.audit_samples.audit_results(["2026-W47"], team="nlp")
        everything = work.audit_samples.audit_results(["2026-W47"])
    assert {one.population for one in found if one.stratum == "judged"} == {2}
    own = sum(one.stratum == "user" for one in found)
    drawn = sum(one.stratum == "user" for one in everything)
    assert {one.population for one in found if one.stratum == "user"} <= {max(own, round(36 * own / drawn))}
    assert {one.population for one in everything} == {4, 36}


def test_who_withdrew_a_judgement_stays_known(store: Store) -> None:
    [outcome] = put(store, [job("e1")])
    number = outcome.failure_id or 0
    first, _ = say(store, number, "ana", side="user", cause="USER.1")
    with store.unit_of_work() as work:
        work.feedback.withdraw_one(number, first, "ana")
    say(store, number, "ana", side="system", cause="SYS.5")
    with store.unit_of_work() as work:
        work.feedback.withdraw(number, "ana", NOON - timedelta(days=7), "admin")
    with engine_of(store).connect() as connection:
        by = connection.execute(select(feedback.c.withdrawn_by).order_by(feedback.c.id)).scalars().all()
    assert by == ["ana", "admin"]
