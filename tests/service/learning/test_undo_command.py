"""`faultline labels undo`: says what it did, and learns without the labels where that is asked."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.service.frozen_clock import FrozenClock
from tests.service.learning.test_retraining import LICENCE
from tests.service.learning.world import World
from tests.service.run_command import run_command


@pytest.fixture
def clock() -> FrozenClock:
    """The command reads the real time."""
    return FrozenClock(datetime.now(UTC))


@pytest.mark.slow
def test_the_labels_of_one_person_are_undone_and_their_effect_ends(world: World, url: str, model: Path) -> None:
    settings = {"FAULTLINE_DATABASE_URL": url, "FAULTLINE_MODEL_DIR": str(model)}
    since = f"{world.clock.now():%Y-%m-%d}"
    world.label(world.fails(LICENCE.format(n=1)), "user", "USER.4", who="mallory")
    world.fails(LICENCE.format(n=2))
    assert world.retrain().promoted
    misspelt = run_command(settings, "labels", "undo", "--who", "malory", "--since", since)
    assert misspelt.stdout == f"no label of malory since {since}: nothing is withdrawn\n"
    done = run_command(settings, "labels", "undo", "--who", "mallory", "--since", since, "--retrain")
    assert done.returncode == 0, done.stderr
    assert "1 label of mallory withdrawn" in done.stdout
    assert "0 labels of 0 groups" in done.stdout
    assert "user USER.4 to system" in done.stdout, "what changes without them"
    assert world.active_layer() is None
