"""Every event is stored exactly once, even if workers, broker and database are killed."""

import random
from pathlib import Path

import pytest

from tests.chaos.outside_view import DATABASE_DOWN
from tests.chaos.plans import Plan, Trouble
from tests.flows.crashes import Round, labs, model_dir
from tests.labs.need import missing, need

pytestmark = pytest.mark.lab

SEED = 4021


def test_2000_events_and_every_part_killed_on_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("setpriv")
    if not (model_dir() / "manifest.json").exists():
        missing("there is no trained model (make install)")
    troubles: list[Trouble] = ["member", "worker", "member", "broker", "member", "database", "worker"]
    random.Random(SEED).shuffle(troubles)
    plan = Plan(events=2_000, troubles=troubles, seed=SEED, alarms=[DATABASE_DOWN])
    with labs() as (broker, database):
        report = Round(plan, broker, database, tmp_path).run()
    with capsys.disabled():
        print(f"\n{report.text()}")
    assert report.stored == 2_000
    assert (report.lost, report.twice) == (0, 0)
    assert report.wrong == []
    assert report.in_hand > 0
    assert report.looks > 0
    assert max(report.returns["member"]) < 40  # instead of the session's 45 s
