"""A candidate that a person refused stays out of use."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pytest

from service.db.session import Store
from service.errors import Conflict
from service.learning.promotion import KEPT_LAYERS, Promotions
from service.learning.records import PACKAGED, GateResult
from service.learning.retraining import Candidate
from tests.service.frozen_clock import FrozenClock
from tests.service.learning.test_retraining import LICENCE
from tests.service.learning.world import World

WAIT_S = 0.5  # what the other process is given before this one goes on


def promoted(world: World, number: int, who: str) -> str:
    """The id of the layer in use after one more label."""
    world.clock.at += timedelta(seconds=5)
    world.label(world.fails(LICENCE.format(n=number)), "user", "USER.4", who=who)
    made = world.retrain()
    assert made.promoted
    return made.layer_id


def test_a_rollback_passes_over_a_refused_layer(world: World) -> None:
    oldest, middle, newest = (promoted(world, n, who) for n, who in enumerate(("ana", "ben", "cem")))
    promotions = world.retraining.promotions
    promotions.refuse(middle, "ana")
    assert promotions.rollback("ana") == (newest, oldest)


def test_a_rollback_returns_to_the_packaged_model_if_all_earlier_layers_were_refused(world: World) -> None:
    first, second = promoted(world, 1, "ana"), promoted(world, 2, "ben")
    promotions = world.retraining.promotions
    promotions.refuse(first, "ana")
    assert promotions.rollback("ana") == (second, PACKAGED)


def test_a_second_rollback_does_not_return_to_the_layer_that_was_rolled_back(world: World) -> None:
    first, second = promoted(world, 1, "ana"), promoted(world, 2, "ben")
    promotions = world.retraining.promotions
    assert promotions.rollback("ana") == (second, first)
    assert promotions.rollback("ana") == (first, PACKAGED)
    with pytest.raises(Conflict):
        promotions.rollback("ana")
    promotions.promote(second, "ana")
    assert promotions.rollback("ana") == (second, PACKAGED)
    promotions.promote(first, "ana")
    promotions.promote(second, "ana")
    promotions.promote(first, "ana")
    assert promotions.rollback("ana") == (first, second), "a promotion by a person is no rollback"


def test_a_candidate_stays_refused_when_the_same_is_fitted_again(world: World) -> None:
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4")
    first = world.retraining.retrain("ana", promote=False, benchmark=world.benchmark)
    assert first.gate.decision == "promote"
    world.retraining.promotions.refuse(first.layer_id, "ana", reason="a test")
    second = world.retrain()
    assert second.layer_id == first.layer_id
    assert (second.promoted, second.gate.decision) == (False, "refuse")
    assert second.gate.reasons == ("refused by ana: a test", *first.gate.reasons)


def test_the_gate_s_own_refusal_does_not_stay(world: World) -> None:
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4")
    made = world.retraining.retrain("ana", promote=False, benchmark=world.benchmark)
    with world.store.unit_of_work() as work:
        work.site_layers.add(made.layer_id, made.fit.layer.text(), "ana", GateResult("refuse", ("worse",)))
    assert world.retrain().promoted


@pytest.mark.parametrize("acts_first", ["refuse", "promote"])
def test_a_layer_is_not_promoted_while_another_process_refuses_it(
    world: World, open_store: Callable[[], Store], acts_first: str
) -> None:
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4")
    layer = world.retraining.retrain("ana", promote=False, benchmark=world.benchmark).layer_id
    theirs = Promotions(open_store(), world.retraining.promotions.base)
    act = theirs.promote if acts_first == "refuse" else theirs.refuse
    with ThreadPoolExecutor(1) as pool, world.store.unit_of_work() as work:
        work.site_layers.lock()
        later = pool.submit(act, layer, "ben")
        time.sleep(WAIT_S)
        if acts_first == "refuse":
            work.site_layers.refuse(layer, "refused by ana")
        else:
            work.site_layers.promote(layer, "ana", "a test")
    with pytest.raises(Conflict):
        later.result(30)
    with world.store.reading() as reading:
        in_use, decision = reading.site_layers.active(), reading.site_layers.get(layer).gate.decision
    assert (in_use, decision) == ((PACKAGED, "refuse") if acts_first == "refuse" else (layer, "promote"))


def at_once(open_store: Callable[[], Store], base: str, *acts: Callable[[Promotions], object]) -> list[str]:
    """What several people do at the same moment, each by a process of its own; returns why it was refused, sorted."""
    start = Barrier(len(acts))

    def one(act: Callable[[Promotions], object], promotions: Promotions) -> str:
        start.wait(30)
        try:
            act(promotions)
        except Conflict as error:
            return error.detail
        return ""

    processes = [Promotions(open_store(), base) for _ in acts]
    with ThreadPoolExecutor(len(acts)) as pool:
        return sorted(pool.map(one, acts, processes))


def changes(world: World) -> tuple[str, list[tuple[str, str, str]]]:
    """The layer in use, and who replaced which layer by which, as the audit log says, oldest first."""
    with world.store.reading() as reading:
        entries = [one for one in reading.audit_log.page(limit=200).items if one.what.startswith("model.")][::-1]
        found = [
            (one.who, str(one.before["model"]), str(one.after["model"]))
            for one in entries
            if one.before is not None and one.after is not None and one.what in {"model.promoted", "model.rolled_back"}
        ]
        return reading.site_layers.active(), found


def waiting(world: World, *numbers: int) -> list[str]:
    """Candidates that wait for a person."""
    made = []
    for number in numbers:
        world.clock.at += timedelta(seconds=5)
        world.label(world.fails(LICENCE.format(n=number)), "user", "USER.4", who=f"labeller {number}")
        made.append(world.retraining.retrain("ana", promote=False, benchmark=world.benchmark).layer_id)
    return made


def test_a_layer_that_two_people_promote_at_once_is_promoted_once(
    world: World, open_store: Callable[[], Store]
) -> None:
    [layer] = waiting(world, 1)
    base = world.retraining.promotions.base
    refused = at_once(open_store, base, lambda one: one.promote(layer, "ben"), lambda one: one.promote(layer, "cem"))
    assert refused == ["", ""]
    active, [(who, before, after)] = changes(world)
    assert (active, before, after) == (layer, PACKAGED, layer)
    assert who in {"ben", "cem"}


def test_of_two_people_who_promote_from_the_same_page_one_wins(world: World, open_store: Callable[[], Store]) -> None:
    first, second = waiting(world, 1, 2)
    base = world.retraining.promotions.base
    refused = at_once(
        open_store,
        base,
        lambda one: one.promote(first, "ben", instead_of=0),
        lambda one: one.promote(second, "cem", instead_of=0),
    )
    assert (refused[0], "another model was put in use" in refused[1]) == ("", True)
    active, [done] = changes(world)
    assert done in {("ben", PACKAGED, first), ("cem", PACKAGED, second)}
    assert active == done[2]


def test_two_people_who_promote_other_layers_at_once_by_commands_follow_each_other_in_the_audit_log(
    world: World, open_store: Callable[[], Store]
) -> None:
    first, second = waiting(world, 1, 2)
    base = world.retraining.promotions.base
    assert at_once(open_store, base, lambda one: one.promote(first, "ben"), lambda one: one.promote(second, "cem")) == [
        "",
        "",
    ]
    active, [earlier, later] = changes(world)
    assert earlier[1] == PACKAGED
    assert later[1] == earlier[2]
    assert active == later[2]


def test_two_people_who_roll_back_from_the_same_page_go_back_once(
    world: World, open_store: Callable[[], Store]
) -> None:
    oldest, newest = promoted(world, 1, "ana"), promoted(world, 2, "ben")
    base = world.retraining.promotions.base
    with world.store.reading() as reading:
        seen = reading.site_layers.last_promotion()
    refused = at_once(
        open_store,
        base,
        lambda one: one.rollback("ben", instead_of=seen),
        lambda one: one.rollback("cem", instead_of=seen),
    )
    assert (refused[0], "another model was put in use" in refused[1]) == ("", True)
    assert changes(world)[0] == oldest
    assert changes(world)[1][-1][1:] == (newest, oldest)


def test_two_rollbacks_in_a_row_find_their_layers_after_many_candidates(world: World) -> None:
    oldest, middle, newest = (promoted(world, n, who) for n, who in enumerate(("ana", "ben", "cem")))
    with world.store.unit_of_work() as work:
        text = work.site_layers.get(newest).text
        for number in range(KEPT_LAYERS):
            world.clock.at += timedelta(minutes=1)
            work.site_layers.add(f"site-{number}", text, "ana", GateResult("ask", ("few labels",)))
        work.site_layers.prune(KEPT_LAYERS)
    promotions = world.retraining.promotions
    assert promotions.rollback("ana") == (newest, middle)
    promotions.refuse(newest, "ana")
    assert promotions.rollback("ana") == (middle, oldest)


def test_candidates_that_are_never_promoted_are_removed(world: World) -> None:
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4")
    with world.store.unit_of_work() as work:
        for number in range(KEPT_LAYERS + 5):
            world.clock.at += timedelta(minutes=1)
            work.site_layers.add(f"site-{number}", "{}", "ana", GateResult("ask", ("few labels",)))
    world.clock.at += timedelta(minutes=1)
    made = world.retraining.retrain("ana", promote=False, benchmark=world.benchmark)
    with world.store.reading() as reading:
        stored = [one.id for one in reading.site_layers.list(limit=500)]
    assert (len(stored), stored[0]) == (KEPT_LAYERS, made.layer_id)


def test_a_candidate_does_not_replace_a_layer_that_it_was_not_compared_with(world: World) -> None:
    """A person rolls back while the candidate is fitted: it must not bring back what it follows."""
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4")
    assert world.retrain().promoted
    world.label(world.fails(f"{LICENCE.format(n=1)} else"), "user", "USER.4")
    said: list[str] = []

    def roll_back(text: str) -> None:
        said.append(text)
        if text.startswith("comparing"):
            world.retraining.promotions.rollback("ana")

    made = world.retraining.retrain("schedule", benchmark=world.benchmark, progress=roll_back)
    assert (made.gate.decision, made.promoted) == ("promote", False)
    assert "another model was put in use" in said[-1]
    with world.store.reading() as reading:
        assert reading.site_layers.active() == PACKAGED
    world.retraining.promotions.promote(made.layer_id, "ana")
    with world.store.reading() as reading:
        assert reading.site_layers.active() == made.layer_id


def test_two_retrainings_at_once_leave_the_layer_in_use_that_the_first_one_promoted(
    open_store: Callable[[], Store], world: World, clock: FrozenClock, model: Path
) -> None:
    worlds = [World(open_store(), clock, model, world.benchmark, sent=1000 * n, key=b"k" * 32) for n in range(1, 4)]
    first, second, later = worlds
    first.label(first.fails(LICENCE.format(n=1)), "user", "USER.4")
    meanwhile: list[Candidate] = []

    def other_process(_: str) -> None:
        if not meanwhile:
            meanwhile.append(first.retrain())

    made = second.retraining.retrain("ben", benchmark=world.benchmark, progress=other_process)
    assert made.layer_id == meanwhile[0].layer_id, "of the same labels, in the same second"
    assert (meanwhile[0].promoted, made.promoted) == (True, True)
    world.waits()
    assert later.fails(LICENCE.format(n=7)).cause == "USER.4", "a process that starts now uses it too"
    with world.store.reading() as reading:
        assert len(reading.site_layers.promotions()) == 1
