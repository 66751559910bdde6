"""Nine wrong labels of one person, through the service: the gate asks, other groups keep their verdicts, and one
command takes them back."""

from datetime import timedelta

import pytest

from service.feedback import withdrawal
from service.learning.records import PACKAGED
from tests.classifiers.model.test_wrong_labels import MISTAKES, OTHERS, SETTINGS
from tests.service.learning.world import World


@pytest.fixture
def dialect() -> str:
    return "sqlite"


def failing(world: World, lines: tuple[str, ...], name: str) -> list[tuple[str, str, float, bool]]:
    """Fail a job with each line below the settings; the stored verdicts."""
    rows = [world.fails(SETTINGS.format(n=n) + line, name=f"{name}{n}") for n, line in enumerate(lines)]
    return [(row.side, row.cause, row.confidence, row.abstained) for row in rows]


def mislabelled(world: World) -> None:
    for number, line in enumerate(MISTAKES):
        row = world.fails(SETTINGS.format(n=number) + line, name=f"mistake{number}")
        world.label(row, "hardware", "HW.GPU.1", who="mallory")


def test_a_person_is_asked_before_they_are_used(world: World) -> None:
    before = failing(world, MISTAKES, "before")
    mislabelled(world)
    made = world.retrain()
    assert (made.gate.decision, made.promoted) == ("ask", False)
    assert "9 of 9 labels contradict a verdict of at least 89% confidence" in made.gate.reasons
    world.waits()
    assert failing(world, MISTAKES, "after") == before


def test_other_groups_keep_their_verdicts_though_a_person_promotes_them(world: World) -> None:
    before = failing(world, OTHERS, "before")
    mislabelled(world)
    made = world.retrain()
    world.retraining.promotions.promote(made.layer_id, "ben")
    world.waits()
    assert {side for side, *_ in failing(world, MISTAKES, "own")} == {"hardware"}
    assert failing(world, OTHERS, "after") == before


def test_the_withdrawal_of_the_persons_labels_ends_their_effect(world: World) -> None:
    before = failing(world, MISTAKES, "before")
    mislabelled(world)
    world.retraining.promotions.promote(world.retrain().layer_id, "ben")
    done = withdrawal.withdraw_labels(world.store, "mallory", world.clock.now() - timedelta(hours=1), actor="ben")
    assert (done.labels, done.verdicts) == (9, 9)
    assert world.retrain().fit.layer.is_empty
    assert world.retraining.promotions.rollback("ben")[1] == PACKAGED
    world.waits()
    assert failing(world, MISTAKES, "after") == before
