"""No request is executed twice and none is lost, even if hooks and service are killed at random moments."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.flows.crashes import model_dir
from tests.flows.hook_crashes import Rounds
from tests.labs.need import missing, need

if TYPE_CHECKING:
    from tests.labs.postgres import Postgres

pytestmark = pytest.mark.lab

ROUNDS, SEED = 6, 7105
TRIES = 4  # kills come at random moments: now and then none of a run comes during an action


def test_rounds_of_kills(postgres_server: "Postgres", tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("setpriv")
    if not (model_dir() / "manifest.json").exists():
        missing("there is no trained model (make install)")
    for seed in range(SEED, SEED + TRIES):
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
