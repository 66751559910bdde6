from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from classifiers import signatures
from classifiers.diagnoser import Diagnoser
from service.cli.classifier.retrain import lines
from service.db.session import Store
from service.errors import Conflict, NotFound
from service.failures.records import FailureFilter
from service.feedback import label_export, withdrawal
from service.feedback.records import FeedbackInput, Labels
from service.groups.count_updater import GroupCountUpdater
from service.learning import gate
from service.learning.gate import LabelFacts
from service.learning.reclassification import Reclassification, RunOptions
from service.learning.records import PACKAGED, GateResult
from service.recommend import policy
from service.recommend.advise import Advisor
from tests.classifiers.conftest import KINDS
from tests.service.frozen_clock import FrozenClock
from tests.service.learning.world import World

LICENCE = "flexnet: no seat left on licence server lic{n} for feature solver-pro, giving up"
XID = "kernel: NVRM: Xid (PCI:0000:0f:00): 79, GPU has fallen off the bus"
KEY = "KeyError: 'lr_{n}'"


@pytest.fixture
def dialect(request: pytest.FixtureRequest) -> str:
    """SQLite, where a test does not ask for both databases."""
    return str(getattr(request, "param", "sqlite"))


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"], indirect=True)
def test_label_retrain_promote_rollback_in_all_processes(
    open_store: Callable[[], Store], world: World, clock: FrozenClock, model: Path
) -> None:
    other = World(open_store(), clock, model, sent=1000)
    first = world.fails(LICENCE.format(n=1))
    assert first.side != "user"
    world.label(first, "user", "USER.4")
    made = world.retrain()
    assert (made.gate.decision, made.promoted) == ("promote", True)
    world.waits()
    for process in (world, other):
        again = process.fails(LICENCE.format(n=7))
        assert (again.side, again.cause) == ("user", "USER.4")
        assert again.fingerprint == first.fingerprint
    assert world.retraining.promotions.rollback("ana") == (made.layer_id, PACKAGED)
    world.waits()
    for process in (world, other):
        assert process.fails(LICENCE.format(n=8)).side == first.side
    with world.store.reading() as reading:
        assert reading.failures.get(again.id).row.side == "user", "verdicts that were given stay"
        done = [one.what for one in reading.audit_log.page(limit=50).items if one.what.startswith("model.")]
    assert sorted(done) == ["model.candidate", "model.promoted", "model.rolled_back"]


def test_with_a_key_only_sealed_layers_are_used(
    open_store: Callable[[], Store], world: World, clock: FrozenClock, model: Path
) -> None:
    keyed = World(open_store(), clock, model, world.benchmark, sent=1000, key=b"k" * 32)
    first = world.fails(LICENCE.format(n=1))
    world.label(first, "user", "USER.4")
    layer = world.retrain().layer_id  # by a process without the key
    world.waits()
    assert world.fails(LICENCE.format(n=7)).cause == "USER.4"
    assert keyed.fails(LICENCE.format(n=7)).cause == first.cause
    with pytest.raises(Conflict, match="faultline model seal"):
        keyed.retraining.promotions.promote(layer, "ana")
    assert keyed.retrain().promoted
    world.waits()
    assert keyed.fails(LICENCE.format(n=8)).cause == "USER.4"


def test_without_labels_nothing_is_promoted(world: World) -> None:
    world.fails(KEY.format(n=1))
    made = world.retrain()
    assert not made.promoted
    assert made.fit.layer.is_empty


def test_a_candidate_that_was_refused_is_never_promoted(world: World) -> None:
    world.label(world.fails(LICENCE.format(n=1)), "system", "SYS.5")
    made = world.retraining.retrain("ana", promote=False, benchmark=())
    with world.store.unit_of_work() as work:
        work.site_layers.add(made.layer_id, made.fit.layer.text(), "ana", GateResult("refuse", ("worse",)))
    with pytest.raises(Conflict, match="worse"):
        world.retraining.promotions.promote(made.layer_id, "ana")
    with pytest.raises(NotFound):
        world.retraining.promotions.promote("site-none", "ana")
    with pytest.raises(Conflict):
        world.retraining.promotions.rollback("ana")


def test_pruning_keeps_the_layer_in_use_and_the_one_before(world: World) -> None:
    made = []
    for number in range(3):
        world.label(world.fails(f"{LICENCE.format(n=1)} number{'abc'[number]}"), "system", "SYS.5")
        world.clock.sleep(60)
        made.append(world.retrain().layer_id)
    with world.store.unit_of_work() as work:
        work.site_layers.prune(0)
        assert {one.id for one in work.site_layers.list()} == set(made[1:])


# --- History -----------------------------------------------------------------------------------------------------


def test_stored_failures_are_classified_again_once(world: World) -> None:
    rows = [world.fails(LICENCE.format(n=number)) for number in range(3)]
    kept = world.fails(KEY.format(n=1))
    world.label(rows[0], "user", "USER.4")
    world.retrain()
    again = reclassification(world)
    assert again.run(FailureFilter(), RunOptions(dry_run=True)).changed == 2
    with world.store.reading() as reading:
        assert reading.failures.get(rows[1].id).row.version == 1
    for changed in (2, 0):
        done = again.run(FailureFilter(), RunOptions(per_second=1e9))
        assert (done.complete, done.changed, done.people) == (True, changed, 1)
    with world.store.reading() as reading:
        assert [reading.failures.get(row.id).row.version for row in (*rows, kept)] == [2, 2, 2, 1]
        assert {reading.failures.get(row.id).row.cause for row in rows} == {"USER.4"}


def test_a_run_that_is_started_again_hours_later_continues(world: World) -> None:
    rows = []
    for number in range(3):
        rows.append(world.fails(LICENCE.format(n=number)))
        world.clock.sleep(60)
    world.label(rows[0], "user", "USER.4")
    world.retrain()
    again, killed = reclassification(world), Mock(side_effect=[None, KeyboardInterrupt])

    def last_day() -> FailureFilter:
        return FailureFilter(since=world.clock.now() - timedelta(days=1))

    with pytest.raises(KeyboardInterrupt):
        again.run(last_day(), RunOptions(per_second=1.0, progress=killed), wanted="a day")
    world.clock.sleep(3 * 3600)
    assert again.run(FailureFilter(), RunOptions(per_second=1e9), wanted="all").read == 2, "another run"
    done = again.run(last_day(), RunOptions(per_second=1e9), wanted="a day")
    assert (done.people, done.read, done.complete) == (0, 2, True), "what ends at the place is read again"
    world.clock.sleep(30 * 3600)
    assert again.run(last_day(), RunOptions(per_second=1e9), wanted="a day").read == 0


def reclassification(world: World) -> Reclassification:
    classifier = Diagnoser(world.diagnoser.packaged, signatures.packaged(), world.active_layer())
    return Reclassification(world.store, world.clock, classifier, Advisor(policy.built_in(), world.clock))


# --- What people may not do alone -------------------------------------------------------------------------------


def test_an_export_holds_only_what_people_said(world: World) -> None:
    row = world.fails(KEY.format(n=1))
    world.label(row, "system", "SYS.5")
    [case] = label_export.cases(world.store)
    assert case["labels"] == {
        "side": "system", "cause": "SYS.5", "category": None, "symptom": None, "retry": None,
        "root_rank": None, "root_line": None,
    }  # fmt: skip
    assert case["provenance"]["feedback"] == "correct"


def test_golden_cases_are_measured_and_never_learned(world: World) -> None:
    row = world.fails(LICENCE.format(n=1))
    world.label(row, "system", "SYS.5")
    label_export.protect(world.store, row.id, golden=True, actor="ben")
    assert world.retrain().fit.layer.is_empty
    world.label(row, "user", "USER.1", who="mallory")
    [golden] = label_export.cases(world.store, golden=True)
    assert golden["labels"]["side"] == "system", "a dissent does not drop or change it"
    with world.store.reading() as reading:
        assert [one.failure_id for one in reading.feedback.labelled(open_only=True).items] == [row.id]


def test_a_bulk_label_waits_for_a_second_person(world: World) -> None:
    rows = [world.fails(KEY.format(n=number)) for number in range(21)]
    wrong = FeedbackInput("correct", Labels("hardware", "HW.GPU.1"))
    results = world.feedback.add_to_many([row.id for row in rows], "mallory", wrong)
    assert all("21 failures at once" in str(one.label.held) for one in results)
    assert world.retrain().fit.layer.is_empty
    with world.store.reading() as reading:
        assert reading.failures.get(rows[0].id).row.side == "user", "nor do the verdicts change"
        assert len(reading.feedback.labelled(open_only=True).items) == 21
    world.label(rows[0], "hardware", "HW.GPU.1", who="ben")
    assert [one["labels"]["side"] for one in label_export.cases(world.store)] == ["hardware"]


def test_a_side_alone_is_not_exported_with_the_cause_of_the_model(world: World) -> None:
    row = world.fails(KEY.format(n=1))
    world.feedback.add(row.id, "ana", FeedbackInput("correct", Labels(row.side)))
    with world.store.reading() as reading:
        assert reading.failures.get(row.id).row.cause == row.cause, "the verdict keeps its cause"
    [exported] = label_export.cases(world.store)
    assert (exported["labels"]["side"], exported["labels"]["cause"]) == (row.side, None)
    world.label(row, row.side, row.cause, who="ben")
    [exported] = label_export.cases(world.store)
    assert exported["labels"]["cause"] == row.cause, "a side alone contradicts no cause of it"
    world.feedback.add(row.id, "ana", FeedbackInput("correct", Labels(row.side)))
    [exported] = label_export.cases(world.store)
    assert exported["labels"]["cause"] == row.cause


def test_who_corrects_another_axis_alone_says_nothing_of_side_and_cause(world: World) -> None:
    row, of_group = (world.fails(LICENCE.format(n=number)) for number in (1, 2))
    world.label(of_group, "user", "USER.4", who="cem")
    alone = FeedbackInput("correct", Labels(retry="helps"))
    assert world.feedback.add(row.id, "mallory", alone).label.held is None
    assert len(list(label_export.cases(world.store))) == 1, "the cause is the model's"
    with pytest.raises(Conflict, match="of side or cause"):
        label_export.protect(world.store, row.id, golden=True, actor="ana")
    world.label(row, "user", "USER.4")
    exported = next(label_export.cases(world.store))
    assert (exported["labels"]["cause"], exported["labels"]["retry"]) == ("USER.4", None)
    assert exported["provenance"]["people"] == 1, "nor does it count as a second person"
    world.feedback.add(row.id, "ana", alone)
    assert next(label_export.cases(world.store))["labels"]["cause"] == "USER.4", "her own words stay"


def test_a_confirmation_is_of_side_and_cause(world: World) -> None:
    row = world.fails(KEY.format(n=1))
    world.feedback.add(row.id, "ana", FeedbackInput("confirm", Labels(row.side)))
    [exported] = label_export.cases(world.store)
    assert (exported["labels"]["side"], exported["labels"]["cause"]) == (row.side, row.cause)


def test_a_label_against_a_decisive_signature_waits(world: World) -> None:
    rows = [world.fails(XID) for _ in range(2)]
    before = rows[0]
    result = world.feedback.add_to_many([row.id for row in rows], "mallory", FeedbackInput("correct", Labels("user")))
    assert "decisive signature" in str(result[0].label.held)
    with world.store.reading() as reading:
        now = reading.failures.get(before.id).row
    assert (now.side, now.decision, now.resubmit) == (before.side, before.decision, before.resubmit)
    assert not list(label_export.cases(world.store))


def test_a_label_against_earlier_labels_of_its_group_waits(world: World) -> None:
    rows = [world.fails(LICENCE.format(n=number)) for number in range(3)]
    for row in rows[:2]:
        world.label(row, "user", "USER.4")
    result = world.label(rows[2], "system", "SYS.5", who="mallory")
    assert "2 earlier labels" in str(result.label.held)
    assert len(list(label_export.cases(world.store))) == 2


def test_everybody_may_correct_their_own_earlier_labels_of_a_group(world: World) -> None:
    rows = [world.fails(LICENCE.format(n=number)) for number in range(3)]
    world.label(rows[0], "user", "USER.4")
    assert world.label(rows[1], "system", "SYS.5").label.held is None
    world.label(rows[0], "user", "USER.4", who="ben")  # two people agree: no longer the word of one
    assert world.label(rows[2], "hardware", "HW.NODE.1", who="carla").label.held is not None


def test_a_side_alone_contradicts_no_cause_of_this_side(world: World) -> None:
    rows = [world.fails(LICENCE.format(n=number)) for number in range(3)]
    for row in rows[:2]:
        world.label(row, "user", "USER.4")
    given = FeedbackInput("correct", Labels(side="user"))
    assert world.feedback.add(rows[2].id, "ben", given).label.held is None


def test_a_futile_failure_is_not_resubmitted_on_one_persons_word(world: World) -> None:
    before = world.fails(KEY.format(n=1))
    assert before.retry_outlook == "futile"
    world.label(before, "system", "SYS.5", who="mallory", retry="helps")
    world.retrain()
    world.waits()
    after = world.fails(KEY.format(n=2))
    assert after.retry_outlook == "futile"
    assert not after.resubmit


@pytest.mark.parametrize("failures", [1, 2])
def test_nor_on_the_word_of_one_of_two_who_agree_on_the_cause(world: World, failures: int) -> None:
    rows = [world.fails(LICENCE.format(n=number)) for number in range(failures)]
    assert rows[0].retry_outlook not in {"helps", "helps_elsewhere"}
    world.label(rows[0], "user", "USER.4", who="ben")
    world.label(rows[-1], "user", "USER.4", who="mallory", retry="helps")
    assert world.retrain().promoted
    world.waits()
    after = world.fails(LICENCE.format(n=7))
    assert (after.cause, after.retry_outlook, after.resubmit) == ("USER.4", "futile", False)
    world.label(rows[0], "user", "USER.4", who="ben", retry="helps")
    assert world.retrain().promoted
    world.waits()
    assert world.fails(LICENCE.format(n=8)).retry_outlook == "helps"


def test_duplicates_do_not_outweigh_other_groups(world: World) -> None:
    for number in range(25):
        world.label(world.fails(KEY.format(n=number)), "hardware", "HW.GPU.1", who="mallory")
    made = world.retrain()
    assert not made.fit.layer.corrects
    assert not made.promoted
    assert made.gate.decision in {"ask", "refuse"}
    assert any("mallory" in one or "no longer recognised" in one for one in made.gate.reasons)


def test_the_labels_of_one_person_are_undone(world: World) -> None:
    row, other = world.fails(KEY.format(n=1)), world.fails(LICENCE.format(n=1))
    since = world.clock.now()
    world.label(row, "hardware", "HW.GPU.1", who="mallory")
    world.label(other, "system", "SYS.5")
    done = withdrawal.withdraw_labels(world.store, "mallory", since, actor="admin")
    assert (done.labels, done.verdicts) == (1, 1)
    with world.store.reading() as reading:
        detail = reading.failures.get(row.id)
        assert (detail.row.side, detail.row.source, detail.row.version) == ("user", "machine", 3)
        assert reading.feedback.label(row.id) is None
    assert len(list(label_export.cases(world.store))) == 1


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"], indirect=True)
def test_a_group_whose_label_is_undone_has_no_label_any_more(world: World) -> None:
    rows = [world.fails(LICENCE.format(n=number)) for number in range(3)]
    GroupCountUpdater(world.store, world.clock)()
    with world.store.reading() as reading:
        [group] = reading.groups.of([rows[0].fingerprint]).values()
    world.feedback.add_to_group(group, "mallory", FeedbackInput("correct", Labels("hardware", "HW.GPU.1")))
    with world.store.unit_of_work() as work:
        assert work.groups.row(group).cause == "HW.GPU.1"
        work.outbox.done("test", [one.id for one in work.outbox.lease("test", limit=100, seconds=60.0)])
    told: list[int] = []
    withdrawal.withdraw_labels(
        world.store, "mallory", world.clock.now(), actor="admin", revised=lambda _, wires: told.extend(wires)
    )
    with world.store.unit_of_work() as work:
        found = work.groups.row(group)
        assert (found.side, found.cause, found.labelled_at) == (rows[0].side, rows[0].cause, None)
        assert not work.group_labels.of(group)
        messages = work.outbox.lease("test", limit=100, seconds=60.0)
    assert [one.type for one in messages] == ["failure.revised"] * 3
    assert sorted(told) == [row.id for row in rows]


def test_a_verdict_that_an_undone_label_had_replaced_is_current_again(world: World) -> None:
    row = world.fails(LICENCE.format(n=1))
    world.label(row, "user", "USER.4")
    world.label(row, "hardware", "HW.GPU.1", who="mallory")
    done = withdrawal.withdraw_labels(world.store, "mallory", world.clock.now(), actor="admin")
    assert (done.labels, done.verdicts) == (1, 1)
    with world.store.reading() as reading:
        found, label = reading.failures.get(row.id).row, reading.feedback.label(row.id)
    assert label is not None
    assert (label.labels.cause, label.disputed) == ("USER.4", False)
    assert (found.side, found.cause, found.source) == ("user", "USER.4", "person")


# --- The gate ---------------------------------------------------------------------------------------------------


def facts(**changes: Any) -> LabelFacts:
    plain: dict[str, Any] = {"labels": 10, "labellers": {"ana": 5, "ben": 5}, "conflicts": 0, "overturned": 0}
    return LabelFacts(**(plain | changes))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (facts(labellers={"mallory": 30, "ana": 1}, labels=31), "30 of 31 labels are by mallory"),
        (facts(overturned=6), "6 of 10 labels contradict a verdict"),
        (facts(labels=4, labellers={"mallory": 4}, overturned=4), "4 of 4 labels contradict a verdict"),
        (facts(conflicts=5), "5 of 10 labels contradict others of their group"),
    ],
)
def test_the_gate_asks_about_doubtful_labels(given: LabelFacts, reason: str) -> None:
    result = gate.judge([], given)
    assert result.decision == "ask"
    assert reason in result.reasons[0]


def test_flipped_sides_are_refused(world: World) -> None:
    flipped = {"user": ("hardware", "HW.GPU.1"), "hardware": ("user", "USER.1"), "system": ("user", "USER.1")}
    for who, kinds in (("mallory", ("oom", "key", "path")), ("eve", ("oom", "key", "path"))):
        for kind in kinds:
            for line in KINDS[kind][4]:
                row = world.fails(line.replace("{n}", "101"))
                world.label(row, *flipped[row.side], who=who)
    made = world.retrain()
    assert made.gate.decision == "refuse"
    assert any("no longer recognised" in one for one in made.gate.reasons)
    assert not made.promoted


def test_the_command_says_whether_a_candidate_is_in_use_and_what_would_put_it_there(world: World) -> None:
    first = world.fails(LICENCE.format(n=1))
    assert lines(world.retrain())[-1] == "not in use: it rests on no label, and changes nothing"
    world.label(first, "user", "USER.4")
    kept = world.retraining.retrain("ana", promote=False, benchmark=world.benchmark)
    assert lines(kept)[-1] == f"not in use: faultline model promote {kept.layer_id} puts it in use"
