"""Nothing is lost and nothing done twice, even if workers, broker, database, hooks and service are killed."""

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.chaos.outside_view import DATABASE_DOWN
from tests.chaos.plans import Plan, Trouble
from tests.flows.crashes import Round, labs, model_dir
from tests.flows.hook_crashes import Rounds
from tests.labs.need import missing, need

if TYPE_CHECKING:
    from tests.labs.postgres import Postgres

pytestmark = pytest.mark.lab

SEED = 4021
ROUNDS, HOOK_SEED = 6, 7105
TRIES = 4  # kills come at random moments: now and then none of a run comes during an action


@pytest.fixture(autouse=True)
def _parts() -> None:
    need("setpriv")
    if not (model_dir() / "manifest.json").exists():
        missing("there is no trained model (make install)")


def test_1000_events_and_every_part_killed_on_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    troubles: list[Trouble] = ["member", "broker", "member", "database", "worker"]
    random.Random(SEED).shuffle(troubles)
    plan = Plan(events=1_000, troubles=troubles, seed=SEED, alarms=[DATABASE_DOWN])
    with labs() as (broker, database):
        report = Round(plan, broker, database, tmp_path).run()
    with capsys.disabled():
        print(f"\n{report.text()}")
    assert report.stored == 1_000
    assert (report.lost, report.twice) == (0, 0)
    assert report.wrong == []
    assert report.in_hand > 0
    assert report.looks > 0
    assert max(report.returns["member"]) < 40  # instead of the session's 45 s


def test_rounds_of_kills_of_hooks_and_service(
    postgres_server: "Postgres", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(HOOK_SEED, HOOK_SEED + TRIES):
        folder = tmp_path / str(seed)
        folder.mkdir()
        report = Rounds(postgres_server, folder, rounds=ROUNDS, seed=seed).run()
        with capsys.disabled():
            print(f"\n{report.text()}")
        assert report.twice == []
        assert report.lost == []
        if report.kills["service"] and report.half:
            return
    pytest.fail("no kill interrupted a hook during an action")
