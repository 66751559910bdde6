"""Retraining on schedule: on one process, on new labels only, and for a person to promote unless set otherwise."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from classifiers.model.site.layer import SiteLayer
from service.db.session import Store
from service.feedback.records import FeedbackInput, Labels
from service.learning.records import PACKAGED, GateResult, RetrainSchedule
from service.learning.retraining import Candidate
from service.learning.scheduled_retraining import LEASE, ScheduledRetraining
from tests.service.frozen_clock import FrozenClock
from tests.service.learning.world import World

LICENCE = "flexnet: no seat left on licence server lic{n} for feature solver-pro, giving up"


class Quick:
    """Retrains on the small benchmark of the test's world; the first calls fail."""

    def __init__(self, world: World, *, fails: int = 0, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._world = world
        self._fails = fails
        self._meanwhile = meanwhile

    def retrain(self, who: str, *, promote: bool) -> Candidate:
        if self._fails:
            self._fails -= 1
            raise RuntimeError("out of memory")
        return self._world.retraining.retrain(
            who, promote=promote, benchmark=self._world.benchmark, progress=lambda _: self._meanwhile()
        )


def scheduled(
    world: World, *, fails: int = 0, meanwhile: Callable[[], None] = lambda: None, **schedule: Any
) -> ScheduledRetraining:
    quick: Any = Quick(world, fails=fails, meanwhile=meanwhile)
    base = world.retraining.promotions.base
    return ScheduledRetraining(world.store, world.clock, lambda: quick, RetrainSchedule(**schedule), lambda: base)


@pytest.fixture
def dialect(request: pytest.FixtureRequest) -> str:
    """SQLite, where a test does not ask for both databases."""
    chosen: str = getattr(request, "param", "sqlite")
    return chosen


def test_it_retrains_after_a_period_with_new_labels_and_leaves_the_promotion_to_a_person(
    world: World, clock: FrozenClock
) -> None:
    due = scheduled(world, every_days=7)
    assert due() is None, "no labels"
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4")
    clock.at += timedelta(seconds=1)
    made = due()
    assert made is not None
    assert (made.gate.decision, made.promoted) == ("promote", False)
    clock.at += timedelta(days=8)
    assert due() is None, "no new labels"
    world.label(world.fails(LICENCE.format(n=2), name="other"), "user", "USER.4")
    assert due() is not None
    world.label(world.fails(LICENCE.format(n=3), name="third"), "user", "USER.4")
    clock.at += timedelta(days=6)
    assert due() is None, "the period is not over"
    with world.store.reading() as reading:
        assert reading.site_layers.active() == PACKAGED


def test_it_retrains_without_new_labels_where_the_layers_are_of_another_packaged_model(
    world: World, clock: FrozenClock
) -> None:
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4")
    layers = []
    for number, base in enumerate(("before the upgrade", "after the downgrade")):
        layer = SiteLayer(about={"base": base, "data": str(number)})
        layers.append(layer)
    clock.at += timedelta(seconds=5)
    store_layer(world, layers[0])
    due = scheduled(world, after_labels=50)
    clock.at += timedelta(seconds=5)
    again = due()
    assert again is not None
    assert again.fit.layer.about["base"] == world.retraining.promotions.base
    clock.at += timedelta(seconds=5)
    assert due() is None
    store_layer(world, layers[1])
    clock.at += timedelta(seconds=5)
    assert due() is None, "while an upgrade goes on, two models must not retrain in turn"


def store_layer(world: World, layer: SiteLayer) -> None:
    """Another process stores a candidate."""
    with world.store.unit_of_work() as work:
        work.site_layers.add(layer.id, layer.text(), "ana", GateResult("promote", ()))


def test_votes_on_labelled_failures_are_no_new_labels(world: World, clock: FrozenClock) -> None:
    due = scheduled(world, after_labels=1)
    rows = [world.fails(LICENCE.format(n=number), name=f"job{number}") for number in range(2)]
    for row in rows:
        world.label(row, "user", "USER.4")
    clock.at += timedelta(seconds=1)
    assert due() is not None
    clock.at += timedelta(hours=1)
    world.feedback.add(rows[0].id, "owner", FeedbackInput("agree", Labels()))
    world.feedback.add(rows[1].id, "owner", FeedbackInput("contest", Labels()))
    assert due() is None
    world.label(rows[0], "user", "USER.4", who="ben")
    assert due() is not None


def test_it_retrains_after_a_number_of_labels_and_promotes_where_that_is_set(world: World, clock: FrozenClock) -> None:
    due = scheduled(world, after_labels=2, promote=True)
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4")
    assert due() is None
    world.label(world.fails(LICENCE.format(n=2)), "user", "USER.4")
    clock.at += timedelta(seconds=1)
    made = due()
    assert made is not None
    assert made.promoted
    with world.store.reading() as reading:
        assert reading.site_layers.active() == made.layer_id


def test_a_label_that_is_given_during_a_run_is_new_after_it(world: World, clock: FrozenClock) -> None:
    rows = [world.fails(LICENCE.format(n=number), name=f"job{number}") for number in range(3)]

    def label_one_more() -> None:
        clock.at += timedelta(minutes=5)
        if rows:
            world.label(rows.pop(), "user", "USER.4")

    label_one_more()
    due = scheduled(world, meanwhile=label_one_more, after_labels=1)
    first, second = due(), due()
    assert first is not None
    assert second is not None
    assert (first.fit.layer.about["labels"], second.fit.layer.about["labels"]) == (1, 3)
    clock.at += timedelta(minutes=5)
    assert due() is None


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"], indirect=True)
def test_of_several_processes_one_retrains(
    open_store: Callable[[], Store], world: World, clock: FrozenClock, model: Path
) -> None:
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4")
    clock.at += timedelta(seconds=1)
    worlds = [world, *(World(open_store(), clock, model, world.benchmark) for _ in range(2))]
    made: list[Candidate | None] = []
    tasks = [scheduled(one, after_labels=1) for one in worlds]
    threads = [Thread(target=lambda task=task: made.append(task())) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(one is not None for one in made) == 1
    assert [task() for task in tasks] == [None, None, None]
    with world.store.reading() as reading:
        assert len([one for one in reading.audit_log.page(limit=50).items if one.what == "model.candidate"]) == 1


def test_a_run_that_failed_is_tried_again_after_its_lease_by_any_process(world: World, clock: FrozenClock) -> None:
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4")
    clock.at += timedelta(seconds=1)
    failing, other = scheduled(world, fails=1, after_labels=1), scheduled(world, after_labels=1)
    with pytest.raises(RuntimeError):
        failing()
    assert other() is None
    clock.at += LEASE + timedelta(seconds=1)
    assert other() is not None


def test_a_layer_of_a_clock_that_was_ahead_does_not_end_the_schedule(world: World, clock: FrozenClock) -> None:
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4")
    right = clock.at
    clock.at += timedelta(days=365)
    of_the_future = world.retraining.retrain("ana", promote=False, benchmark=world.benchmark)
    clock.at = right + timedelta(hours=1)
    due = scheduled(world, after_labels=1)
    made = due()
    assert made is not None
    assert made.layer_id != of_the_future.layer_id
    clock.sleep(3600)
    assert due() is None, "no label is new"
    world.label(world.fails(LICENCE.format(n=2)), "user", "USER.4", who="ben")
    assert due() is not None
