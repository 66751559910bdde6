"""Jobs on a real Slurm whose users try to get more from the hook, which runs as root, than Slurm gives them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from service.clock import SystemClock
from service.hooks.request import Ready, Settled
from service.hooks.slurm.scheduler import SlurmOptions, SlurmScheduler
from service.hooks.slurm.scripts import ScriptStore
from service.hooks.slurm.tools import SlurmCommands
from tests.labs import slurm
from tests.service.hooks.sample_requests import Lasting, request
from tests.service.hooks.slurm import benches
from tests.service.hooks.slurm.benches import USER, Bench

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("slurm")]  # a machine runs one cluster at a time

OTHER = "man"  # exists on every Debian system, as USER does
SECRET = "ROOT_SECRET=of-root-only"
FAILS = '[ "$SLURM_JOB_NODELIST" != gpu1 ]'
YEAR_MINUTES = 365 * 24 * 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[slurm.Slurm]:
    with slurm.cluster("127.0.0.1:1", "none") as running:
        running.run("sh", "-c", f"umask 077; printf '{SECRET}\\0' >/root/secret")
        yield running


@pytest.fixture
def bench(cluster: slurm.Slurm, tmp_path: Path) -> Bench:
    return benches.bench_of(cluster, tmp_path / "bin")


@pytest.fixture
def scripts(tmp_path: Path) -> ScriptStore:
    return ScriptStore(tmp_path / "scripts", SystemClock())


@pytest.fixture
def hook(bench: Bench, scripts: ScriptStore) -> SlurmScheduler:
    return SlurmScheduler(SlurmCommands(bench.folder), scripts, SystemClock(), SlurmOptions(settle_s=0))


def wrapped(bench: Bench, header: str) -> str:
    """Submit a job as USER whose script has a line that Slurm did not read: `--wrap` is not searched for options."""
    assert bench.cluster is not None
    command = ["sbatch", "--parsable", "--no-requeue", "--comment=faultline/resubmit=auto", "--nodelist=gpu1"]
    output = f"--output={bench.share}/logs/%j.out"
    script = f'{header}\necho "found $ROOT_SECRET"; {FAILS}'
    job = bench.cluster.run(*command, output, "--wrap", script, user=USER).strip()
    bench.wait(job, ["FAILED"])
    return job


def settled(hook: SlurmScheduler, job: str, request_id: str, **changes: object) -> Settled:
    seen = hook.inspect(request(job, request_id, **changes), begun_at=None)
    assert isinstance(seen, Settled), seen
    return seen


@pytest.mark.parametrize(
    "option",
    [
        *("--bbf=/root/secret", "--nodefile=/root/secret", "--export-file=/root/secret", "--priority=4000000000"),
        *("--uid=0", "--wait", "--test-only", "--clusters=other", "--array=0-9"),
    ],
)
def test_a_script_gets_no_files_rights_or_time_of_root(bench: Bench, hook: SlurmScheduler, option: str) -> None:
    job = wrapped(bench, f"#SBATCH {option}")
    wanted = request(job, f"hostile{job}")
    assert isinstance(hook.inspect(wanted, begun_at=None), Ready)
    done = hook.execute(wanted, Lasting())
    assert isinstance(done, Settled)
    assert done.new_job_id is not None
    ended = bench.wait(done.new_job_id, ["COMPLETED"])
    before = bench.job(job)
    for field in ("user_name", "group_id", "priority", "nice", "burst_buffer"):
        assert ended[field] == before[field], field
    assert bench.log_of(done.new_job_id) == "found \n"


@pytest.mark.parametrize("header", ["#SBATCH --nice=-5000", "#SBATCH --prio=9", "#SBATCH hetjob", "#SBATCH -w ./x"])
def test_a_script_with_an_option_that_cannot_be_judged_is_not_submitted(
    bench: Bench, hook: SlurmScheduler, header: str
) -> None:
    seen = settled(hook, wrapped(bench, header), "unsafe1")
    assert (seen.result, "not repeated with root's rights" in seen.detail) == ("refused", True)


def test_a_comment_does_not_release_what_an_administrator_holds(bench: Bench, hook: SlurmScheduler) -> None:
    assert bench.cluster is not None
    job = bench.failed()
    begun = datetime.now(UTC)
    bench.run("scontrol", "requeuehold", job)
    bench.run("scontrol", "hold", job)
    own = hook.inspect(request(job, "held1"), begun_at=begun)  # as if the hook itself had requeued it
    assert isinstance(own, Settled)
    bench.cluster.run("scontrol", "update", f"JobId={job}", "Comment=faultline/request=held1", user=USER)
    for begun_at in (None, begun):
        seen = hook.inspect(request(job, "held1"), begun_at=begun_at)
        assert isinstance(seen, Settled)
        assert (seen.result, "administrator" in seen.detail) == ("unknown", True)
    assert bench.job(job)["state_reason"] == "JobHeldAdmin"


def test_the_comment_of_another_user_answers_no_request(bench: Bench, hook: SlurmScheduler) -> None:
    job = bench.failed()
    claim = "faultline/request=claimed1"
    theirs = [bench.submit("true", f"--uid={OTHER}", f"--comment={text}") for text in (claim, f"x\n{job}0|{claim}")]
    for told in ({"lease_count": 2, "user": USER}, {"lease_count": 2}):
        wanted = request(job, "claimed1", action="submit", extra=told)
        assert isinstance(hook.inspect(wanted, begun_at=None), Ready)
    done = hook.execute(wanted, Lasting())
    assert isinstance(done, Settled)
    assert done.new_job_id not in {None, *theirs}
    assert hook.inspect(wanted, begun_at=None) == Settled(
        "done", "it was submitted before the hook ended", done.new_job_id
    )


@pytest.mark.parametrize("text", ["--uid=root", "\x01\x1b[31m", "$(id)`id`;|&", "%j%u", "\u202eabc", "x" * 900])
def test_names_and_comments_are_only_text(bench: Bench, hook: SlurmScheduler, text: str) -> None:
    job = bench.failed(f"--job-name={text}", f"--comment={text} faultline/resubmit=auto")
    wanted = request(job, f"text{job}", action="submit", extra={"ask_scheduler": True})
    assert isinstance(hook.inspect(wanted, begun_at=None), Ready)
    done = hook.execute(wanted, Lasting())
    assert isinstance(done, Settled)
    assert done.new_job_id is not None
    ended = bench.wait(done.new_job_id, ["COMPLETED"])
    assert (ended["name"], ended["user_name"]) == (text, USER)
    assert ended["comment"].endswith(f"faultline/resubmit=auto faultline/request=text{job}")


@pytest.mark.parametrize(
    "text", ["x Priority=4000000000 Nice=-9 TimeLimit=1", '" Priority=4000000000 "', "' Requeue=0", "x\nPriority=9"]
)
def test_a_comment_changes_nothing_but_the_comment_of_a_requeued_job(
    bench: Bench, hook: SlurmScheduler, text: str
) -> None:
    job = bench.failed(f"--comment={text} faultline/resubmit=auto")
    before = bench.job(job)
    wanted = request(job, f"words{job}", extra={"ask_scheduler": True})
    assert isinstance(hook.inspect(wanted, begun_at=None), Ready)
    assert hook.execute(wanted, Lasting()) == Settled("done", "requeued without gpu1")
    ended = bench.wait(job, ["COMPLETED"], seconds=110)
    for field in ("nice", "requeue", "user_name"):
        assert ended[field] == before[field], field
    # While Slurm's backfill looks for a place, it takes a year for no limit.
    assert (limit := ended["time_limit"]) == before["time_limit"] or limit["number"] == YEAR_MINUTES
    assert ended["priority"]["number"] < 1_000_000_000
    assert ended["comment"] == f"{' '.join(text.split())} faultline/resubmit=auto faultline/request=words{job}"


@pytest.mark.parametrize("comment", ["xfaultline/resubmit=auto", "Faultline/Resubmit=auto", "faultline/resubmit=auto."])
def test_what_only_looks_like_an_opt_in_is_none(bench: Bench, hook: SlurmScheduler, comment: str) -> None:
    job = bench.failed(f"--comment={comment}")
    assert settled(hook, job, "fake1", extra={"ask_scheduler": True}).result == "refused"
    twice = bench.failed("--comment=faultline/resubmit=auto, but not now: faultline/resubmit=never")
    assert settled(hook, twice, "fake2").result == "refused"


def test_heterogeneous_jobs_and_whole_arrays_are_left_alone(bench: Bench, hook: SlurmScheduler) -> None:
    output = f"--output={bench.share}/logs/%j.out"
    first = bench.run(
        *("sbatch", "--parsable", f"--uid={USER}", output, "-n1", "--mem=50", ":", "-n1", "--mem=50"),
        given="#!/bin/bash\nexit 1\n",
    ).strip()
    array = bench.submit("exit 1", "--array=0-2")
    tools = SlurmCommands(bench.folder)
    deadline = time.monotonic() + 60
    for one in (first, str(int(first) + 1), *(f"{array}_{task}" for task in range(3))):
        while (job := tools.job(one)) is None or job.end is None or job.completing:
            assert time.monotonic() < deadline, one
            time.sleep(0.2)
    for part in (first, f"{first}+0", f"{first}+1", str(int(first) + 1)):
        assert settled(hook, part, "het1").result == "refused"
    assert settled(hook, f"{array}_9", "array1").result == "refused"
    assert settled(hook, f"{array}_[0-2]", "array1").result == "refused"


def test_a_job_that_cannot_be_read_does_not_keep_the_scripts_of_others_from_being_saved(
    bench: Bench, hook: SlurmScheduler, scripts: ScriptStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bench.cluster is not None
    odd = "sbatch --parsable -J $(printf 'a\\377') --comment=$(printf '\\377;\\\\\"') --wrap 'exit 1'"
    hostile = bench.cluster.run("sh", "-c", odd, user=USER).strip()
    plain = bench.failed()
    deadline = time.monotonic() + 60
    while hostile not in dict(SlurmCommands(bench.folder).failed_jobs()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    hook.maintain()
    assert scripts.get(plain) is not None
    asked: list[str] = []
    monkeypatch.setattr(SlurmCommands, "job", lambda _tools, job: asked.append(job))
    hook.maintain()
    assert not asked, f"jobs that were looked at once are not asked for again ({hostile})"
