"""A candidate that a person refused stays out of use."""

from datetime import timedelta

from service.learning.records import PACKAGED, GateResult
from tests.service.learning.test_retraining import LICENCE
from tests.service.learning.world import World


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
