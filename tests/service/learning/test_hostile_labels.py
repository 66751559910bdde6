"""What hostile labellers and careless people do, and what stops it."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from service.cli.classifier.labels import lines_of
from service.db.session import Store
from service.errors import Conflict
from service.feedback import label_export, label_review, withdrawal
from service.feedback.records import StoredFeedback
from service.feedback.repository import feedback
from service.learning import gate
from service.learning.gate import Comparison, LabelFacts
from service.learning.records import GateResult
from service.learning.retraining import ALIKE
from tests.service.frozen_clock import FrozenClock
from tests.service.learning.test_retraining import KEY, LICENCE, XID
from tests.service.learning.world import World


def test_a_refusal_stays_though_the_same_labels_are_fitted_later(world: World) -> None:
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4")
    first = world.retraining.retrain("ana", promote=False, benchmark=world.benchmark)
    world.retraining.promotions.refuse(first.layer_id, "ben", reason="a test")
    world.clock.sleep(60)
    second = world.retrain()
    assert (second.promoted, second.gate.decision) == (False, "refuse")
    assert second.gate.reasons[0] == "refused by ben: a test"
    world.label(world.fails(LICENCE.format(n=2)), "user", "USER.4", who="cem")
    assert world.retrain().promoted, "other labels are another candidate"


def test_a_label_that_waits_for_a_second_person_does_not_become_golden(world: World) -> None:
    row = world.fails(XID)
    assert world.label(row, "user", "USER.1", who="mallory").label.held is not None
    with pytest.raises(Conflict, match="nobody disputes"):
        label_export.protect(world.store, row.id, golden=True, actor="admin")
    assert not list(label_export.cases(world.store, golden=True))


def test_a_label_of_one_person_becomes_golden_by_another_only(world: World) -> None:
    row = world.fails(LICENCE.format(n=1))
    world.label(row, "system", "SYS.5")
    with pytest.raises(Conflict, match="another person"):
        label_export.protect(world.store, row.id, golden=True, actor="ana")
    world.label(row, "system", "SYS.5", who="ben")
    label_export.protect(world.store, row.id, golden=True, actor="ana")
    assert len(list(label_export.cases(world.store, golden=True))) == 1


def test_the_author_of_a_golden_label_may_take_it_out_of_the_set(world: World) -> None:
    row = world.fails(LICENCE.format(n=1))
    world.label(row, "system", "SYS.5")
    label_export.protect(world.store, row.id, golden=True, actor="ben")
    label_export.protect(world.store, row.id, golden=False, actor="ana")
    assert not list(label_export.cases(world.store, golden=True))


def test_the_withdrawal_of_a_persons_labels_leaves_the_golden_set(world: World) -> None:
    golden, other = world.fails(LICENCE.format(n=1)), world.fails(KEY.format(n=1))
    for row in (golden, other):
        world.label(row, "system", "SYS.5")
    label_export.protect(world.store, golden.id, golden=True, actor="admin")
    done = withdrawal.withdraw_labels(world.store, "ana", world.clock.now(), actor="ben")
    assert (done.labels, done.verdicts) == (1, 1)
    assert [case["labels"]["cause"] for case in label_export.cases(world.store, golden=True)] == ["SYS.5"]
    with world.store.reading() as reading:
        assert reading.feedback.label(other.id) is None
        assert reading.failures.get(golden.id).row.source == "person"


def test_one_person_does_not_outvote_two_by_labelling_many_failures_of_a_group(world: World) -> None:
    rows = [world.fails(LICENCE.format(n=number)) for number in range(7)]
    for row in rows[:6]:
        world.label(row, "hardware", "HW.GPU.1", who="mallory")
    for who in ("ana", "ben"):
        world.label(rows[6], "user", "USER.4", who=who)
    made = world.retrain()
    assert [entry.labels["cause"] for entry in made.fit.layer.memory.entries] == ["USER.4"]
    assert len(made.fit.conflicts) == ALIKE, "of the six, the newest are read"


def test_one_label_for_many_failures_waits_in_an_import_too(world: World) -> None:
    rows = [world.fails(LICENCE.format(n=number)) for number in range(label_review.MOST_AT_ONCE + 2)]
    for row in rows:
        world.label(row, "user", "USER.4", who="ana")
    lines = [
        ("line", case | {"labels": {**case["labels"], "side": "system", "cause": "SYS.5"}})
        for case in label_export.cases(world.store)
    ]
    withdrawal.withdraw_labels(world.store, "ana", world.clock.now(), actor="ben")
    done = label_export.import_labels(world.store, world.feedback, iter(lines), actor="mallory")
    assert (done.taken, done.waiting) == (len(rows), len(rows))
    assert not list(label_export.cases(world.store))
    with world.store.reading() as reading:
        assert {reading.failures.get(row.id).row.cause for row in rows} == {rows[0].cause}, "nor do the verdicts change"


def test_a_line_of_an_import_that_nests_without_end_rejects_only_itself(world: World) -> None:
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4")
    [case] = label_export.cases(world.store)
    deep = json.loads("[" * 900 + "]" * 900)
    hostile = [
        deep,
        case | {"event": deep},
        case | {"weight": deep},
        case | {"provenance": {**case["provenance"], "who": deep}},
        *(case | {"event": {**case["event"], name: deep}} for name in ("nodes", "labels", "status", "logs")),
        case | {"event": {**case["event"], "nodes": [deep], "node_events": [{"text": deep}]}},
    ]
    lines = [(f"line {number}", one) for number, one in enumerate([*hostile, case], 1)]
    done = label_export.import_labels(world.store, world.feedback, iter(lines), actor="ana")
    assert done.taken == 1
    assert [one.partition(":")[0] for one in done.wrong] == [f"line {number}" for number in range(1, len(lines))]
    assert all(len(one) < 300 for one in done.wrong)


def test_a_golden_set_that_changes_while_a_candidate_is_compared_leaves_it_to_a_person(world: World) -> None:
    row = world.fails(LICENCE.format(n=1))
    world.label(row, "user", "USER.4")

    def protect_it(_: str) -> None:
        label_export.protect(world.store, row.id, golden=True, actor="ben")

    made = world.retraining.retrain("ana", benchmark=world.benchmark, progress=protect_it)
    assert (made.gate.decision, made.promoted) == ("ask", False), "it has learned a golden case"
    assert "golden set was changed" in made.gate.reasons[0]
    assert world.retrain().fit.layer.is_empty


def test_small_steps_do_not_hide_a_decline_since_the_packaged_model(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    judge = gate.judge

    def judged(
        comparisons: Sequence[Comparison], facts: LabelFacts, shadow: Any, whole: Sequence[Comparison]
    ) -> GateResult:
        seen.append([one.name for one in whole])
        return judge(comparisons, facts, shadow, whole)

    monkeypatch.setattr(gate, "judge", judged)
    for number, who in enumerate(("ana", "ben")):
        world.clock.sleep(60)
        world.label(world.fails(LICENCE.format(n=number)), "user", "USER.4", who=who)
        world.retrain()
    assert seen == [[], ["packaged cases, compared with the packaged model"]]


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_of_two_people_at_once_the_second_one_sees_what_the_first_one_said(
    open_store: Callable[[], Store], world: World, clock: FrozenClock, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = world.fails(LICENCE.format(n=1))
    world.label(row, "user", "USER.4", who="cem")
    other = World(open_store(), clock, model, sent=1000)
    threads: list[Thread] = []
    plain = feedback._disagree

    def while_the_other_answers(judged: Sequence[StoredFeedback]) -> bool:
        if not threads:
            threads.append(Thread(target=other.label, args=(row, "system", "SYS.5"), kwargs={"who": "ben"}))
            threads[0].start()
            threads[0].join(0.5)  # it waits for this transaction
        return plain(judged)

    monkeypatch.setattr(feedback, "_disagree", while_the_other_answers)
    world.label(row, "user", "USER.4", who="ana", kind="confirm")
    threads[0].join(30)
    with world.store.reading() as reading:
        label = reading.feedback.label(row.id)
    assert label is not None
    assert (label.people, label.disputed) == (3, True)


def test_of_a_flood_of_labels_few_are_read(world: World) -> None:
    rows = [world.fails(LICENCE.format(n=number)) for number in range(ALIKE + 3)]
    for row in rows:
        world.clock.sleep(1)
        world.label(row, "user", "USER.4")
    world.label(rows[0], "user", "USER.4", who="ben")  # the newest label of this failure is his
    made = world.retrain()
    assert made.fit.layer.about["labellers"] == {"ana": ALIKE, "ben": 1}
    assert len(list(label_export.cases(world.store))) == len(rows), "an export holds all"
    oldest = rows[1].id
    kept = label_export.cases(world.store, golden=False, most_alike=ALIKE, audited={oldest})
    assert oldest in {int(one["id"].rpartition("-")[2]) for one in kept}


def test_lines_of_another_encoding_are_named_and_the_others_are_read(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"id": "1"}\r\n{"who": "J\xf6rg"}\n{"id": "3"}\n\x1a')
    unreadable: list[str] = []
    assert [value for _, value in lines_of(str(file), unreadable)] == [{"id": "1"}, {"id": "3"}]
    assert [one.partition(": expected JSON in UTF-8")[0] for one in unreadable] == [f"{file}:2", f"{file}:4"]
    file.write_bytes('{"id": "1"}\n{"id": "2"}\n'.encode("utf-16"))
    assert not list(lines_of(str(file), unreadable))
