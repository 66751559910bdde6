"""`faultline reclassify --scheduler` on a real Dask cluster whose worker, database and scheduler are killed."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.contracts.event import from_object
from service.db.session import Store
from tests.labs.dask_cluster import DaskCluster, dask_cluster
from tests.labs.postgres import Postgres
from tests.service.frozen_clock import FrozenClock
from tests.service.learning.test_retraining import KEY, LICENCE
from tests.service.learning.world import World

pytestmark = pytest.mark.lab

CHANGED, UNCHANGED = 100, 20
RANGE = 5
PATIENCE_S = 300.0  # of waits that end as soon as it has happened


@pytest.fixture
def dialect() -> str:
    return "postgresql"


@pytest.fixture
def clock() -> FrozenClock:
    """The command reads the real time."""
    return FrozenClock(datetime.now(UTC))


class Command:
    """The command of an operator."""

    def __init__(self, url: str, model: Path, folder: Path) -> None:
        self.environ = {"FAULTLINE_DATABASE_URL": url, "FAULTLINE_MODEL_DIR": str(model)}
        self._folder = folder

    def start(self, cluster: DaskCluster, *more: str) -> subprocess.Popen[str]:
        """Start it on a cluster."""
        command = [sys.executable, "-m", "service", "reclassify", "--json", "--range-size", str(RANGE)]
        return subprocess.Popen(
            [*command, "--scheduler", cluster.address, *more],
            env={**self.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "PATH": "/usr/bin:/bin"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self._folder,
        )


def stored_failures(world: World) -> None:
    """Jobs that fail of a licence server, and others; a person labels one of the first, and a layer learns it."""
    lines = [LICENCE.format(n=number) for number in range(CHANGED)] + [KEY.format(n=1)] * UNCHANGED
    events = [
        from_object(
            {
                "cluster": "orion",
                "job_id": f"job-{number}",
                "status": "failed",
                "ended_at": (world.clock.now() - timedelta(minutes=1 + number)).isoformat(),
                "logs": [{"rank": 0, "stream": "stderr", "tail": f"step 10 loss 2.1\n{line}\n"}],
            }
        )
        for number, line in enumerate(lines)
    ]
    for start in range(0, len(events), 40):
        world.diagnose(events[start : start + 40])
    world.label(world.fails(LICENCE.format(n=9)), "user", "USER.4")
    world.retraining.promotions.promote(world.retrain().layer_id, "ben")


def done_ranges(store: Store) -> int:
    """The number of ranges that are recorded as done."""
    with store.reading() as reading:
        return len(reading.reclassification_runs.done_ranges(1))


def until(happened: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_each_failure_is_read_once_although_a_worker_the_database_and_the_scheduler_are_killed(
    world: World, url: str, model: Path, tmp_path: Path, postgres: Postgres
) -> None:
    stored_failures(world)
    command = Command(url, model, tmp_path)
    with dask_cluster(tmp_path, command.environ) as cluster:
        cluster.start(2)
        running = command.start(cluster, "--rate", "40")
        until(lambda: done_ranges(world.store) >= 3, running)
        cluster.kill_worker()
        before = done_ranges(world.store)
        until(lambda: done_ranges(world.store) >= before + 3, running)
        postgres.kill()
        postgres.start()
        before = done_ranges(world.store)
        until(lambda: done_ranges(world.store) >= before + 3, running)
        cluster.kill_scheduler()
        _, error = running.communicate(timeout=PATIENCE_S)
        assert running.returncode == 1, error
        assert "it continues where it stopped" in error
        kept = done_ranges(world.store)
        assert 0 < kept < (CHANGED + UNCHANGED) // RANGE
        cluster.close()
        cluster.start(1)
        again = command.start(cluster)
        shown, error = again.communicate(timeout=PATIENCE_S)
        assert again.returncode == 0, error
    total = json.loads(shown)
    assert (total["read"], total["changed"], total["people"]) == (CHANGED + UNCHANGED, CHANGED, 1)
    with world.store.reading() as reading:
        page = reading.failures.page(limit=500).items
        versions = [len(reading.failures.get(row.id).versions) for row in page if row.source == "machine"]
        assert reading.reclassification_runs.unfinished("") is None
    assert sorted(versions) == [1] * UNCHANGED + [2] * CHANGED, "no failure has two new versions"
    assert {row.cause for row in page if "flexnet" in row.headline} == {"USER.4"}
    assert done_ranges(world.store) == 0, "the run is over"
