"""A layer of another packaged model, or one without a valid seal, gives no verdicts in commands either."""

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from classifiers.model.site.layer import parse
from service.feedback import withdrawal
from service.learning import active_layer
from service.learning.active_layer import ActiveLayer
from service.learning.records import GateResult
from tests.service.frozen_clock import FrozenClock
from tests.service.learning.test_retraining import LICENCE
from tests.service.learning.world import World
from tests.service.run_command import run_command


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
    assert world.retraining.active_layer() is None
    assert changed(url, model) == 0
    settings = {"FAULTLINE_DATABASE_URL": url, "FAULTLINE_MODEL_DIR": str(model)}
    named = run_command(settings, "reclassify", "--dry-run", "--model", other.id)
    assert named.returncode != 0
    assert "it was fitted on another packaged model" in named.stderr
    assert run_command(settings, "reclassify", "--dry-run", "--model", layer).returncode == 0


def test_a_layer_without_a_seal_is_not_used_to_classify_again(world: World, url: str, model: Path) -> None:
    layer, _ = taught(world)
    key = base64.b64encode(b"k" * 32).decode()
    settings = {"FAULTLINE_DATABASE_URL": url, "FAULTLINE_MODEL_DIR": str(model), "FAULTLINE_MODEL_KEY": key}
    assert run_command(settings, "model", "seal", str(model)).returncode == 0
    assert changed(url, model, FAULTLINE_MODEL_KEY=key) == 0
    assert run_command(settings, "reclassify", "--dry-run", "--model", layer).returncode != 0
    assert run_command(settings, "model", "seal", layer).returncode == 0
    assert changed(url, model, FAULTLINE_MODEL_KEY=key) == 2


@pytest.mark.parametrize("text", ["[" * 100_000, "{}"], ids=["deep", "empty"])
def test_a_layer_without_a_seal_is_not_even_read(world: World, text: str) -> None:
    with world.store.unit_of_work() as work:
        work.site_layers.add("site-000000000000", text, "ana", GateResult("promote", ()))
        work.site_layers.promote("site-000000000000", "mallory", "")
    assert world.fails(LICENCE.format(n=1)).side
    sealed = ActiveLayer(world.store, world.clock, key=b"k" * 32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(active_layer, "parse", lambda _: pytest.fail("read before its seal was checked"))
        assert sealed.current("any") is None


def test_retraining_after_all_labels_were_withdrawn_ends_their_effect(world: World) -> None:
    before = world.fails(LICENCE.format(n=1))
    world.label(before, "user", "USER.4", who="mallory")
    assert world.retrain().promoted
    withdrawal.withdraw_labels(world.store, "mallory", world.clock.now() - timedelta(hours=1), by="ben")
    assert world.retrain().promoted
    world.waits()
    after = world.fails(LICENCE.format(n=2))
    assert (after.side, after.cause, after.confidence) == (before.side, before.cause, before.confidence)
    assert not world.retrain().promoted, "nothing is left to end"
