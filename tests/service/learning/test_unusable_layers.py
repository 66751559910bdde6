"""A layer of another packaged model, or one without a valid seal, gives no verdicts in commands either."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from classifiers.model.site.layer import parse
from service.errors import Conflict
from service.feedback import withdrawal
from service.learning import active_layer, registry
from service.learning.active_layer import ActiveLayer
from service.learning.records import PACKAGED, GateResult
from service.learning.tables import site_layers
from tests.service.databases import engine_of
from tests.service.frozen_clock import FrozenClock
from tests.service.learning.test_retraining import LICENCE
from tests.service.learning.world import World
from tests.service.run_command import run_command

KEY = b"k" * 32


@pytest.fixture
def clock() -> FrozenClock:
    """The command reads the real time."""
    return FrozenClock(datetime.now(UTC))


def taught(world: World) -> tuple[str, str]:
    """A layer in use that gives another cause to two stored failures; its id and text."""
    for number in range(2):
        world.fails(LICENCE.format(n=number))
    world.label(world.fails(LICENCE.format(n=9)), "user", "USER.4")
    made = world.retrain()
    assert made.promoted
    return made.layer_id, made.fit.layer.text()


def changed(url: str, model: Path, **environ: str) -> int:
    """The failures that `faultline reclassify` would change."""
    settings = {"FAULTLINE_DATABASE_URL": url, "FAULTLINE_MODEL_DIR": str(model), **environ}
    done = run_command(settings, "reclassify", "--dry-run", "--json", "--rate", "1000")
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["changed"])


def test_a_layer_of_another_model_is_not_used_to_classify_again(world: World, url: str, model: Path) -> None:
    layer, text = taught(world)
    assert changed(url, model) == 2
    body = json.loads(text)
    body["about"]["base"] = "another model"
    other = parse(json.dumps(body))
    with world.store.unit_of_work() as work:
        work.site_layers.add(other.id, other.text(), "ana", GateResult("promote", ()))
        work.site_layers.promote(other.id, "ana", "before the model was replaced")
    assert world.active_layer() is None
    assert changed(url, model) == 0
    settings = {"FAULTLINE_DATABASE_URL": url, "FAULTLINE_MODEL_DIR": str(model)}
    named = run_command(settings, "reclassify", "--dry-run", "--model", other.id)
    assert named.returncode != 0
    assert "it was fitted on another packaged model" in named.stderr
    assert run_command(settings, "reclassify", "--dry-run", "--model", layer).returncode == 0


def test_a_layer_without_a_seal_is_not_used_to_classify_again(world: World, url: str, model: Path) -> None:
    layer, _ = taught(world)
    key = base64.b64encode(KEY).decode()
    settings = {"FAULTLINE_DATABASE_URL": url, "FAULTLINE_MODEL_DIR": str(model), "FAULTLINE_MODEL_KEY": key}
    assert run_command(settings, "model", "seal", str(model)).returncode == 0
    assert changed(url, model, FAULTLINE_MODEL_KEY=key) == 0
    assert run_command(settings, "reclassify", "--dry-run", "--model", layer).returncode != 0
    assert run_command(settings, "model", "seal", layer).returncode == 0
    assert changed(url, model, FAULTLINE_MODEL_KEY=key) == 2


def candidate(world: World) -> str:
    """The id of a candidate that the gate would promote, and that nobody has promoted."""
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4")
    return world.retraining.retrain("ana", promote=False, benchmark=world.benchmark).layer_id


def put_in_use_by_sql(world: World, layer: str, *, decision: str = "promote") -> None:
    """What somebody can do who writes to the database and has no key."""
    with world.store.unit_of_work() as work:
        work.site_layers.promote(layer, "mallory", "")
    with engine_of(world.store).begin() as connection:
        connection.execute(update(site_layers).where(site_layers.c.id == layer).values(decision=decision))


@pytest.fixture
def keyed(world: World) -> World:
    return replace(world, key=KEY)


@pytest.mark.parametrize("refused", [True, False], ids=["refused", "waiting"])
def test_a_layer_without_a_promotion_gives_no_verdicts_if_the_database_says_that_it_is_in_use(
    keyed: World, refused: bool
) -> None:
    layer = candidate(keyed)
    before = keyed.fails(LICENCE.format(n=2)).cause
    if refused:
        keyed.retraining.promotions.refuse(layer, "ana")
    put_in_use_by_sql(keyed, layer)
    assert replace(keyed, sent=100).fails(LICENCE.format(n=3)).cause == before
    assert keyed.active_layer() is None
    with keyed.store.reading() as reading:
        shown = registry.layer(reading, keyed.retraining.promotions, layer).layer
    assert not shown.in_use


def test_a_refusal_that_was_changed_in_the_database_does_not_let_a_person_promote(keyed: World) -> None:
    layer = candidate(keyed)
    keyed.retraining.promotions.refuse(layer, "ana")
    put_in_use_by_sql(keyed, layer, decision="ask")
    with pytest.raises(Conflict, match="not sealed"):
        keyed.retraining.promotions.promote(layer, "ben")


def test_a_rollback_does_not_return_to_a_layer_without_a_promotion(keyed: World) -> None:
    layer = candidate(keyed)
    put_in_use_by_sql(keyed, layer)
    keyed.clock.sleep(5)
    keyed.label(keyed.fails(LICENCE.format(n=4)), "user", "USER.4", who="ben")
    used = keyed.retrain()
    assert used.promoted
    assert keyed.retraining.promotions.rollback("ana") == (used.layer_id, PACKAGED)


def test_the_seal_of_a_promoted_layer_ends_with_its_refusal(keyed: World) -> None:
    layer = candidate(keyed)
    keyed.retraining.promotions.promote(layer, "ana")
    assert keyed.active_layer() is not None
    keyed.retraining.promotions.rollback("ana")
    keyed.retraining.promotions.refuse(layer, "ana")
    put_in_use_by_sql(keyed, layer)
    assert keyed.active_layer() is None


@pytest.mark.parametrize("text", ["[" * 100_000, "{}"], ids=["deep", "empty"])
def test_a_layer_without_a_seal_is_not_even_read(world: World, text: str) -> None:
    with world.store.unit_of_work() as work:
        work.site_layers.add("site-000000000000", text, "ana", GateResult("promote", ()))
        work.site_layers.promote("site-000000000000", "mallory", "")
    assert world.fails(LICENCE.format(n=1)).side
    sealed = ActiveLayer(world.store, world.clock, key=KEY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(active_layer, "parse", lambda _: pytest.fail("read before its seal was checked"))
        assert sealed.current("any") is None


def test_retraining_after_all_labels_were_withdrawn_ends_their_effect(world: World) -> None:
    before = world.fails(LICENCE.format(n=1))
    world.label(before, "user", "USER.4", who="mallory")
    assert world.retrain().promoted
    withdrawal.withdraw_labels(world.store, "mallory", world.clock.now() - timedelta(hours=1), actor="ben")
    assert world.retrain().promoted
    world.waits()
    after = world.fails(LICENCE.format(n=2))
    assert (after.side, after.cause, after.confidence) == (before.side, before.cause, before.confidence)
    assert not world.retrain().promoted, "nothing is left to end"


@pytest.mark.parametrize("damage", ["body", "gate"])
def test_a_damaged_row_stops_neither_verdicts_nor_the_next_retraining(
    world: World, url: str, model: Path, damage: str
) -> None:
    layer, _ = taught(world)
    world.waits()
    assert world.fails(LICENCE.format(n=11)).cause == "USER.4"
    with engine_of(world.store).begin() as connection:
        connection.execute(update(site_layers).values({damage: b"\x28\xb5\x2f\xfd truncated"}))
    other = World(world.store, world.clock, model, world.benchmark, sent=1000)
    world.waits()
    assert world.fails(LICENCE.format(n=12)).cause == "USER.4", "the one that was read before stays"
    assert other.fails(LICENCE.format(n=13)).job_id == "job-1001"
    promotions = world.retraining.promotions
    with world.store.reading() as reading:
        [view] = registry.layers(reading, promotions)
        assert view.obstacle is not None
        registry.layer(reading, promotions, layer)
    world.shadow_watch()
    done = run_command({"FAULTLINE_DATABASE_URL": url, "FAULTLINE_MODEL_DIR": str(model)}, "model", "show", layer)
    assert "Traceback" not in done.stderr
    assert ("can't be read" in done.stderr) is (damage == "body")
    world.clock.sleep(60)
    made = world.retrain()
    promotions.promote(made.layer_id, "ben")
    assert promotions.rollback("ana") == (made.layer_id, PACKAGED)


def test_a_refused_layer_changes_no_stored_verdict(world: World, url: str, model: Path) -> None:
    for number in range(2):
        world.fails(LICENCE.format(n=number))
    world.label(world.fails(LICENCE.format(n=9)), "user", "USER.4")
    made = world.retraining.retrain("ana", promote=False, benchmark=world.benchmark)
    world.retraining.promotions.refuse(made.layer_id, "ben")
    settings = {"FAULTLINE_DATABASE_URL": url, "FAULTLINE_MODEL_DIR": str(model)}
    command = ("reclassify", "--model", made.layer_id, "--json", "--rate", "1000")
    refused = run_command(settings, *command)
    assert refused.returncode == 1
    assert "was refused" in refused.stderr
    counted = run_command(settings, *command, "--dry-run")
    assert json.loads(counted.stdout)["changed"] == 2
