"""What hostile labellers and careless people do, and what stops it."""

import json

import pytest

from service.errors import Conflict
from service.feedback import label_export, label_review, withdrawal
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
    assert len(made.fit.conflicts) == 6


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
