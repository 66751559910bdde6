"""`faultline labels undo`: says what it did, and learns without the labels where that is asked."""

import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.errors import Conflict
from service.feedback import withdrawal
from service.feedback.records import JUDGING, FeedbackInput
from tests.service.frozen_clock import FrozenClock
from tests.service.learning.test_retraining import LICENCE
from tests.service.learning.world import World
from tests.service.run_command import run_command


@pytest.fixture
def dialect(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def clock() -> FrozenClock:
    """The command reads the real time."""
    return FrozenClock(datetime.now(UTC))


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"], indirect=True)
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


def step(world: World, number: int, rng: random.Random) -> None:
    """One person labels, confirms or takes back, or the machine judges again."""
    who = rng.choice(["ana", "ben", "cem"])
    what = rng.choice(["label", "label", "confirm", "undo", "withdraw", "machine"])
    with world.store.reading() as reading:
        detail = reading.failures.get(number)
    if what == "label":
        world.label(
            detail.row, *rng.choice([("user", "USER.4"), ("system", "SYS.5"), ("hardware", "HW.NODE.1")]), who=who
        )
    elif what == "confirm":
        world.feedback.add(number, who, FeedbackInput("confirm"))
    elif what == "undo":
        world.feedback.undo(number, who)
    elif what == "withdraw":
        withdrawal.withdraw_labels(world.store, who, world.clock.now() - timedelta(seconds=4), actor="admin")
    elif detail.row.source == "machine":
        with world.store.unit_of_work() as work:
            work.failures.revise(number, {**(detail.verdict or {}), "confidence": rng.random()})


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("seed", range(8))
def test_after_any_withdrawal_the_verdict_is_that_of_the_last_judgement_that_is_left(world: World, seed: int) -> None:
    rng = random.Random(seed)
    row = world.fails(LICENCE.format(n=1))
    for _ in range(14):
        world.clock.sleep(1)
        with suppress(Conflict):
            step(world, row.id, rng)
        with world.store.reading() as reading:
            now, label = reading.failures.get(row.id).row, reading.feedback.label(row.id)
            left = [one for one in reading.feedback.of(row.id) if one.kind in JUDGING]
        wanted = (left[-1].labels.side, left[-1].labels.cause, "person") if left else (row.side, row.cause, "machine")
        assert (now.side, now.cause, now.source) == wanted
        assert (label is None) == (not left)
