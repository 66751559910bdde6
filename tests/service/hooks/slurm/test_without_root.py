"""The hook without root on a real Slurm: an ordinary user resubmits the own jobs, and nobody else's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.clock import SystemClock
from service.hooks.request import Failed, Ready, Settled
from service.hooks.slurm.scheduler import SlurmOptions, SlurmScheduler
from service.hooks.slurm.scripts import ScriptStore
from service.hooks.slurm.tools import SlurmCommands
from tests.labs import slurm
from tests.service.hooks.sample_requests import Lasting, request
from tests.service.hooks.slurm import benches
from tests.service.hooks.slurm.benches import USER, Bench

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("slurm")]  # a machine runs one cluster at a time

OTHER = "man"  # exists on every Debian system, as USER does


@pytest.fixture(scope="module")
def cluster() -> Iterator[slurm.Slurm]:
    with slurm.cluster("127.0.0.1:1", "none") as running:
        yield running


@pytest.fixture
def bench(cluster: slurm.Slurm, tmp_path: Path) -> Bench:
    return benches.bench_of(cluster, tmp_path / "root")


def hook_of(user: str, cluster: slurm.Slurm, folder: Path) -> SlurmScheduler:
    tools = SlurmCommands(benches.bench_of(cluster, folder / user, user).folder)
    options = SlurmOptions(as_root=False, user=user, settle_s=0)
    return SlurmScheduler(tools, ScriptStore(folder / "scripts", SystemClock()), SystemClock(), options)


def test_an_ordinary_user_requeues_and_submits_the_own_jobs(cluster: slurm.Slurm, bench: Bench, tmp_path: Path) -> None:
    hook = hook_of(USER, cluster, tmp_path)
    for action in ("requeue", "submit"):
        job = bench.failed()
        wanted = request(job, f"own-{action}", action=action)
        assert isinstance(hook.inspect(wanted, begun_at=None), Ready)
        done = hook.execute(wanted, Lasting())
        assert isinstance(done, Settled)
        assert done.result == "done"
        ended = bench.wait(done.new_job_id or job, ["COMPLETED"], seconds=110)
        assert (ended["user_name"], ended["nodes"] != "gpu1") == (USER, True)


def test_jobs_of_others_are_neither_requeued_nor_submitted_under_a_wrong_name(
    cluster: slurm.Slurm, bench: Bench, tmp_path: Path
) -> None:
    hook = hook_of(OTHER, cluster, tmp_path)
    job = bench.failed()
    seen = hook.inspect(request(job, "submit-other", action="submit"), begun_at=None)
    assert isinstance(seen, Settled | Failed)
    requeue = request(job, "requeue-other")
    if isinstance(hook.inspect(requeue, begun_at=None), Ready):
        outcome = hook.execute(requeue, Lasting())
        assert isinstance(outcome, Failed) or outcome.result != "done"
    assert bench.job(job)["job_state"] == ["FAILED"]
    assert OTHER not in bench.run("squeue", "--noheader", "--states=all", "--format=%u")


def test_jobs_of_a_hidden_partition_are_known_with_their_nodes(
    cluster: slurm.Slurm, bench: Bench, tmp_path: Path
) -> None:
    hook = hook_of(USER, cluster, tmp_path)
    tools = SlurmCommands(benches.bench_of(cluster, tmp_path / "tools", USER).folder)
    job = bench.failed()
    cluster.run("scontrol", "update", "PartitionName=gpu", "Hidden=YES")
    try:
        assert job in dict(tools.failed_jobs())
        wanted = request(job, "hidden1", action="submit", exclude_nodes=("gpu1",))
        assert isinstance(hook.inspect(wanted, begun_at=None), Ready)
        done = hook.execute(wanted, Lasting())
        assert isinstance(done, Settled)
        assert tools.find("faultline/request=hidden1") == [done.new_job_id]  # else it would be submitted twice
    finally:
        cluster.run("scontrol", "update", "PartitionName=gpu", "Hidden=NO")
