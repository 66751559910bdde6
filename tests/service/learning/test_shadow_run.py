"""A candidate runs on stored failures next to the model in use before it is promoted."""

from collections.abc import Callable
from pathlib import Path

import pytest

from service.db.session import Store
from service.learning import gate
from service.learning.gate import LabelFacts
from service.learning.records import StoredLayer
from service.learning.shadow_figures import (
    MOST_EXAMPLES,
    ChangedFailure,
    DecisionChange,
    ShadowFigures,
    added,
    figures,
)
from service.learning.shadow_run import AT_ONCE, LEASE
from tests.service.frozen_clock import FrozenClock
from tests.service.learning.killed_process import killed_at_each_step
from tests.service.learning.test_retraining import KEY, LICENCE
from tests.service.learning.world import World

NOTHING_DOUBTFUL = LabelFacts(1, {"ana": 1}, 0, 0)


@pytest.fixture
def dialect() -> str:
    return "sqlite"


def pair(number: int, before: str, after: str, *, decisions: tuple[str, str] = ("ask", "ask")) -> ChangedFailure:
    return ChangedFailure(
        failure=number,
        headline="killed",
        before=before,
        after=after,
        decision_before=decisions[0],
        decision_after=decisions[1],
        gpu_hours=float(number),
    )


def candidate(world: World) -> StoredLayer:
    with world.store.reading() as reading:
        return reading.site_layers.list()[0]


def test_changes_are_counted_by_cause_and_decision() -> None:
    found = figures(
        [
            pair(1, "system SYS.5", "user USER.4"),
            pair(2, "system SYS.5", "system SYS.5"),
            pair(3, "hardware HW.1", "hardware HW.2", decisions=("resubmit_now", "hold")),
        ],
        "2026-11-20T12:00:00+00:00",
    )
    assert (found.read, found.changed) == (3, 2)
    assert [(one.cause, one.read, one.changed) for one in found.by_cause] == [("HW.1", 1, 1), ("SYS.5", 2, 1)]
    [decision] = found.decisions
    assert decision == DecisionChange(before="resubmit_now", after="hold", failures=1, gpu_hours=3.0)
    twice = added(found, found)
    assert (twice.read, twice.changed, twice.decisions[0].gpu_hours) == (6, 4, 6.0)


def test_the_examples_hold_each_kind_of_change() -> None:
    many = [pair(number, "system SYS.5", "user USER.4") for number in range(10, 60)]
    rare = pair(1, "hardware HW.1", "user USER.4")
    found = figures([*many, rare], "")
    assert len(found.examples) == MOST_EXAMPLES
    assert rare in found.examples


def test_the_gate_asks_about_resubmits_that_a_candidate_starts() -> None:
    started = ShadowFigures(
        read=50, decisions=(DecisionChange(before="stop", after="resubmit_now", failures=2, gpu_hours=64.0),)
    )
    result = gate.judge((), NOTHING_DOUBTFUL, started)
    assert result.decision == "ask"
    assert "2 failures (64.0 GPU-hours) would be resubmitted" in result.reasons[0]
    ended = ShadowFigures(
        read=50, decisions=(DecisionChange(before="resubmit_now", after="stop", failures=2, gpu_hours=64.0),)
    )
    assert gate.judge((), NOTHING_DOUBTFUL, ended).decision == "promote"


def test_a_candidate_that_changes_much_waits_for_a_person_and_is_watched_meanwhile(
    open_store: Callable[[], Store], world: World, clock: FrozenClock, model: Path
) -> None:
    rows = [world.fails(LICENCE.format(n=number)) for number in range(12)]
    world.fails(KEY.format(n=1))
    world.label(rows[0], "user", "USER.4")
    made = world.retrain()
    assert (made.gate.decision, made.promoted) == ("ask", False)
    assert "shadow run: 11 of 12 failures would get a different verdict" in made.gate.reasons[0]
    before = candidate(world).gate.shadow
    assert before is not None
    assert {one.change for one in before.examples} == {f"{rows[1].side} {rows[1].cause} to user USER.4"}
    clock.sleep(120)
    new = world.fails(LICENCE.format(n=50))
    other = World(open_store(), clock, model)
    for process in (world, other, world):
        process.shadow_watch()
    after = candidate(world).gate.shadow
    assert after is not None
    assert (after.read, after.changed) == (before.read + 1, before.changed + 1)
    with world.store.reading() as reading:
        assert reading.failures.get(new.id).row.version == 1, "a shadow run stores no verdict"
    world.retraining.promotions.promote(made.layer_id, "ben")
    world.waits()
    world.fails(LICENCE.format(n=51))
    world.shadow_watch()
    assert candidate(world).gate.shadow == after


def test_many_failures_of_one_second_do_not_stop_a_shadow_run(world: World, clock: FrozenClock) -> None:
    world.label(world.fails(LICENCE.format(n=0)), "user", "USER.4")
    world.retraining.retrain("ana", promote=False, benchmark=world.benchmark)
    known = candidate(world).gate.shadow
    assert known is not None
    clock.sleep(120)
    for number in range(AT_ONCE + 5):
        world.fails(LICENCE.format(n=number))
    clock.sleep(120)
    world.fails(LICENCE.format(n=99))
    for _ in range(4):
        world.shadow_watch()
    after = candidate(world).gate.shadow
    assert after is not None
    assert after.read == known.read + AT_ONCE + 6


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_watches_counts_no_failure_twice(
    open_store: Callable[[], Store], world: World, clock: FrozenClock, model: Path
) -> None:
    world.label(world.fails(LICENCE.format(n=0)), "user", "USER.4")
    world.retraining.retrain("ana", promote=False, benchmark=())
    known = candidate(world).gate.shadow
    assert known is not None
    clock.sleep(120)
    world.fails(LICENCE.format(n=1))
    for _ in killed_at_each_step(lambda: World(open_store(), clock, model).shadow_watch()):
        now = candidate(world).gate.shadow
        assert now is not None
        assert now.read - known.read in {0, 1}
        clock.sleep(LEASE.total_seconds() + 1)  # of the killed process
    after = candidate(world).gate.shadow
    assert after is not None
    assert after.read == known.read + 1
