"""A process that is killed while it labels, retrains, promotes or rolls back leaves nothing half done."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from service.db.session import Store
from service.learning.records import PACKAGED
from tests.service.frozen_clock import FrozenClock
from tests.service.learning.killed_process import killed_at_each_step
from tests.service.learning.test_retraining import LICENCE
from tests.service.learning.world import World

pytestmark = pytest.mark.lab


@pytest.fixture(params=["postgresql"])
def dialect(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def another(url: str, clock: FrozenClock, model: Path) -> Callable[[], World]:
    """A process of its own on the same database."""
    return lambda: World(Store(url, clock=clock), clock, model)


def consistent(world: World) -> str:
    """The model in use; fails where a promotion has no layer, no audit entry, or a layer that can't be used."""
    with world.store.reading() as reading:
        promotions = reading.site_layers.promotions()
        stored = {one.id: one for one in reading.site_layers.list()}
        entries = [one.what for one in reading.audit_log.page(limit=200).items]
        active = reading.site_layers.active()
    assert all(one.layer == PACKAGED or one.layer in stored for one in promotions)
    changes = entries.count("model.promoted") + entries.count("model.rolled_back")
    assert len(promotions) == changes
    layer = world.active_layer()
    assert (PACKAGED if layer is None else layer.id) == active
    return active


def models_seen(world: World, another: Callable[[], World], action: Callable[[World], object]) -> list[str]:
    """The model in use after each kill of the action, and after the run that completes."""
    seen = [consistent(world) for _ in killed_at_each_step(lambda: action(another()))]
    return [*seen, consistent(world)]


def once(seen: Sequence[str]) -> list[str]:
    """The values without repetitions in a row."""
    return [one for index, one in enumerate(seen) if index == 0 or one != seen[index - 1]]


def test_kills_at_each_statement_leave_the_old_model_or_the_new_one(world: World, another: Callable[[], World]) -> None:
    failure = world.fails(LICENCE.format(n=1))
    for _ in killed_at_each_step(lambda: another().label(failure, "user", "USER.4")):
        with world.store.reading() as reading:
            label, row = reading.feedback.label(failure.id), reading.failures.get(failure.id).row
        assert (label is not None) == (row.source == "person"), "a label without its verdict, or the other way round"
    assert once(
        models_seen(world, another, lambda process: process.retraining.retrain("ana", promote=False, benchmark=()))
    ) == [PACKAGED]
    with world.store.reading() as reading:
        [candidate] = reading.site_layers.list()
    promoted = models_seen(world, another, lambda process: process.retraining.promotions.promote(candidate.id, "ana"))
    assert once(promoted) == [PACKAGED, candidate.id]
    world.waits()
    assert world.fails(LICENCE.format(n=7)).side == "user"
    rolled_back = models_seen(world, another, lambda process: process.retraining.promotions.rollback("ana"))
    assert once(rolled_back) == [candidate.id, PACKAGED]
    world.waits()
    assert world.fails(LICENCE.format(n=8)).side != "user"
