"""One suite: on a real Slurm by its commands and by slurmrestd, and on the fake that the crash tests use."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.clock import SystemClock
from service.hooks.request import LeaseExpired, Ready, Request, SchedulerUnavailable, Settled
from service.hooks.slurm.client import SlurmClient
from service.hooks.slurm.rest import SlurmRest
from service.hooks.slurm.rest_call import SlurmRestTransport
from service.hooks.slurm.scheduler import SlurmOptions, SlurmScheduler
from service.hooks.slurm.scripts import ScriptStore
from service.hooks.slurm.tools import SlurmCommands, SlurmRefused
from tests.labs import slurm, slurmrestd
from tests.service.hooks.sample_requests import Lasting, request
from tests.service.hooks.slurm import benches
from tests.service.hooks.slurm.benches import GOES_ON, USER, Bench

pytestmark = pytest.mark.xdist_group("slurm")  # a machine runs one cluster at a time

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def cluster() -> Iterator[slurm.Slurm]:
    with slurm.cluster("127.0.0.1:1", "none") as running:
        yield running


@pytest.fixture(scope="module", params=["fake", *(pytest.param(one, marks=pytest.mark.lab) for one in ("lab", "rest"))])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("slurm")
    if request.param == "fake":
        with benches.fake(folder) as one:
            yield one
        return
    running: slurm.Slurm = request.getfixturevalue("cluster")
    one = benches.bench_of(running, folder)
    if request.param == "lab":
        yield one
        return
    with slurmrestd.slurmrestd(running) as one.rest:
        yield one


@pytest.fixture
def tools(bench: Bench) -> SlurmClient:
    commands = SlurmCommands(bench.folder)
    if bench.rest is None:
        return commands
    token = bench.rest.token
    return SlurmRest(
        SlurmRestTransport(bench.rest.url, clock=SystemClock(), token=lambda: token), commands, SystemClock()
    )


@pytest.fixture
def scripts(tmp_path: Path) -> ScriptStore:
    return ScriptStore(tmp_path / "scripts", SystemClock())


@pytest.fixture
def hook(bench: Bench, tools: SlurmClient, scripts: ScriptStore) -> SlurmScheduler:
    return SlurmScheduler(
        tools, scripts, SystemClock(), SlurmOptions(settle_s=0, link="https://faultline.example", spool=bench.spool)
    )


def carry_out(hook: SlurmScheduler, wanted: Request, begun_at: datetime | None = None) -> Settled:
    seen = hook.inspect(wanted, begun_at=begun_at)
    assert isinstance(seen, Ready), seen
    outcome = hook.execute(wanted, Lasting())
    assert isinstance(outcome, Settled), outcome
    return outcome


def refused(hook: SlurmScheduler, wanted: Request) -> str:
    seen = hook.inspect(wanted, begun_at=None)
    assert isinstance(seen, Settled), seen
    assert seen.result == "refused"
    return seen.detail


def test_a_requeued_job_runs_at_once_without_the_node_and_keeps_its_owners_comment(
    bench: Bench, hook: SlurmScheduler
) -> None:
    job = bench.failed("--comment=my own words, a=b")
    wanted = request(job, "requeue1", extra={"failure_id": 12})
    assert carry_out(hook, wanted) == Settled("done", "requeued without gpu1")
    ended = bench.wait(job, ["COMPLETED"], seconds=110)  # and not after Slurm's 120 s
    assert ended["nodes"] != "gpu1"
    assert ended["comment"] == "my own words, a=b faultline/request=requeue1"
    assert ended["admin_comment"].endswith("https://faultline.example/failures/12")
    assert "ran on gpu1" not in bench.log_of(job).splitlines()[-1:]
    found = hook.inspect(wanted, begun_at=LONG_AGO)
    assert isinstance(found, Settled)
    assert found.result == "done"


def test_a_job_that_somebody_else_requeued_is_left_alone(bench: Bench, hook: SlurmScheduler) -> None:
    job = bench.failed()
    bench.run("scontrol", "requeuehold", job)
    held = hook.inspect(request(job, "other1"), begun_at=None)
    assert isinstance(held, Settled)
    assert (held.result, "on hold" in held.detail) == ("already_done", True)
    bench.run("scontrol", "update", f"JobId={job}", "StartTime=now", "ExcNodeList=gpu1")
    bench.run("scontrol", "release", job)
    bench.wait(job, ["COMPLETED"])
    again = hook.inspect(request(job, "other1"), begun_at=None)
    assert again == Settled("already_done", "it has succeeded since")


def test_a_job_that_slurm_expedites_itself_is_left_alone(tmp_path: Path, scripts: ScriptStore) -> None:
    """Slurm 25.11 and later; the lab's is older."""
    with benches.fake(tmp_path / "slurm") as bench:
        job = bench.failed()
        state = bench.folder.parent / "slurm.json"
        state.write_text(state.read_text().replace('["FAILED"]', '["FAILED", "COMPLETING", "EXPEDITING"]'))
        hook = SlurmScheduler(SlurmCommands(bench.folder), scripts, SystemClock(), SlurmOptions())
        seen = hook.inspect(request(job), begun_at=None)
    assert seen == Settled("already_done", "Slurm starts it again by itself (expedited requeue)")


def test_a_list_of_nodes_that_can_not_be_read_is_found_before_the_first_step(
    tmp_path: Path, scripts: ScriptStore
) -> None:
    """It ended the hook while the request was carried out, and again after each start."""
    with benches.fake(tmp_path / "slurm") as bench:
        job = bench.failed()
        state = bench.folder.parent / "slurm.json"
        state.write_text(state.read_text().replace('"required_nodes": ""', '"required_nodes": "gpu[1-"'))
        hook = SlurmScheduler(SlurmCommands(bench.folder), scripts, SystemClock(), SlurmOptions(settle_s=0))
        assert "a list of nodes in the job's record can't be read" in refused(hook, request(job))


def test_a_running_job_is_left_alone(bench: Bench, hook: SlurmScheduler) -> None:
    job = bench.submit(GOES_ON)
    bench.wait(job, ["RUNNING"])
    seen = hook.inspect(request(job), begun_at=None)
    assert isinstance(seen, Settled)
    assert seen.result == "already_done"
    bench.run("scancel", job)
    bench.wait(job, ["CANCELLED"])
    assert refused(hook, request(job)) == "it was cancelled"


@pytest.mark.parametrize("zone", ["", "+00:00"])
def test_a_later_run_than_the_one_that_was_diagnosed_is_left_alone(
    bench: Bench, hook: SlurmScheduler, zone: str
) -> None:
    job = bench.failed()
    before = (datetime.now(UTC) - timedelta(minutes=5)).replace(tzinfo=None).isoformat() + zone
    seen = hook.inspect(request(job, extra={"ended_before": before}), begun_at=None)
    assert isinstance(seen, Settled)
    assert (seen.result, "run again since" in seen.detail) == ("already_done", True)


@pytest.mark.parametrize("wish", ["never", "advise"])
def test_the_owner_can_refuse_in_the_comment(bench: Bench, hook: SlurmScheduler, wish: str) -> None:
    job = bench.failed(f"--comment=faultline/resubmit={wish}; paper run")
    assert refused(hook, request(job)).endswith(f"faultline/resubmit={wish}")


def test_without_the_required_consent_of_the_owner_a_job_is_left_alone(bench: Bench, hook: SlurmScheduler) -> None:
    silent = bench.failed("--comment=paper run")
    assert "does not say" in refused(hook, request(silent, extra={"ask_scheduler": True}))
    willing = bench.failed("--comment=paper run faultline/resubmit=auto")
    assert isinstance(hook.inspect(request(willing, extra={"ask_scheduler": True}), begun_at=None), Ready)


def test_the_no_requeue_flag_is_respected_unless_the_owner_opted_in(bench: Bench, hook: SlurmScheduler) -> None:
    assert "--no-requeue" in refused(hook, request(bench.failed("--no-requeue")))
    job = bench.failed("--no-requeue", "--comment=faultline/resubmit=auto")
    outcome = carry_out(hook, request(job, "norequeue"))
    assert outcome.new_job_id not in {None, job}


def test_a_hook_killed_after_the_first_step_takes_up_its_own_job_only(bench: Bench, hook: SlurmScheduler) -> None:
    job = bench.failed()
    wanted = request(job, "half1")
    begun = datetime.now(UTC)
    assert isinstance(hook.inspect(wanted, begun_at=None), Ready)
    with pytest.raises(LeaseExpired):
        hook.execute(wanted, Lasting(steps=1))
    assert bench.job(job)["hold"] is True
    before = hook.inspect(request(job, "half1"), begun_at=begun + timedelta(hours=1))  # put on hold before it was begun
    assert isinstance(before, Settled)
    assert before.result == "already_done"
    # Another hook, which has the next lease, does not report a job as done that would wait for ever.
    elsewhere = hook.inspect(request(job, "half1", extra={"lease_count": 2}), begun_at=None)
    assert isinstance(elsewhere, Settled)
    assert (elsewhere.result, "a person has to release it" in elsewhere.detail) == ("unknown", True)
    seen = hook.inspect(wanted, begun_at=begun)
    assert isinstance(seen, Ready)
    assert seen.begun
    carry_out(hook, wanted, begun_at=begun)
    assert bench.wait(job, ["COMPLETED"])["nodes"] != "gpu1"


def test_a_job_that_the_hook_put_on_hold_is_not_forgotten_if_a_question_is_refused(
    tmp_path: Path, scripts: ScriptStore
) -> None:
    with benches.fake(tmp_path / "slurm") as bench:
        hook = SlurmScheduler(SlurmCommands(bench.folder), scripts, SystemClock(), SlurmOptions(settle_s=0))
        job = bench.failed()
        wanted = request(job, "half3")
        begun = datetime.now(UTC)
        assert isinstance(hook.inspect(wanted, begun_at=None), Ready)
        with pytest.raises(LeaseExpired):
            hook.execute(wanted, Lasting(steps=1))
        sinfo = bench.folder / "sinfo"
        usual = sinfo.read_text()
        sinfo.write_text("#!/bin/sh\necho 'slurm_load_partitions: Message receive failure' >&2\nexit 1\n")
        with pytest.raises(SchedulerUnavailable, match="Message receive failure"):
            hook.inspect(wanted, begun_at=begun)
        sinfo.write_text(usual)
        carry_out(hook, wanted, begun_at=begun)
        assert bench.wait(job, ["COMPLETED"])["nodes"] != "gpu1"


def test_a_hook_killed_before_the_release_releases_it(bench: Bench, hook: SlurmScheduler) -> None:
    job = bench.failed()
    wanted = request(job, "half2")
    assert isinstance(hook.inspect(wanted, begun_at=None), Ready)
    with pytest.raises(LeaseExpired):
        hook.execute(wanted, Lasting(steps=2))
    assert bench.job(job)["comment"] == "faultline/request=half2"
    carry_out(hook, wanted, begun_at=datetime.now(UTC))
    assert bench.wait(job, ["COMPLETED"])["restart_cnt"] == 1 or bench.kind == "fake"


def test_nothing_is_executed_after_the_lease(bench: Bench, hook: SlurmScheduler) -> None:
    job = bench.failed()
    for action in ("requeue", "submit"):
        wanted = request(job, "late1", action=action)
        assert isinstance(hook.inspect(wanted, begun_at=None), Ready)
        with pytest.raises(LeaseExpired):
            hook.execute(wanted, Lasting(steps=0))
    assert bench.job(job)["job_state"] == ["FAILED"]


@pytest.mark.parametrize("action", ["requeue", "submit"])
def test_no_step_begins_that_could_end_after_the_lease(bench: Bench, hook: SlurmScheduler, action: str) -> None:
    """A command that hangs is accepted late: the next holder does not see it, and the job would run twice."""
    job = bench.failed()
    before = bench.job(job)
    wanted = request(job, f"short{action}", action=action)
    assert isinstance(hook.inspect(wanted, begun_at=None), Ready)
    with pytest.raises(LeaseExpired):
        hook.execute(wanted, Lasting(left_s=59))
    assert bench.job(job)["job_state"] == before["job_state"] == ["FAILED"]


def test_a_recently_started_request_is_waited_for(bench: Bench, tools: SlurmClient, scripts: ScriptStore) -> None:
    job = bench.failed()
    careful = SlurmScheduler(tools, scripts, SystemClock(), SlurmOptions(settle_s=30))
    with pytest.raises(SchedulerUnavailable, match="moments ago"):
        careful.inspect(request(job), begun_at=datetime.now(UTC))


def test_a_new_submission_belongs_to_the_user_has_the_same_options_and_is_found_again(
    bench: Bench, hook: SlurmScheduler
) -> None:
    job = bench.failed("--mem=700", "--comment=mine")
    wanted = request(job, "submit1", action="submit")
    outcome = carry_out(hook, wanted)
    assert outcome.result == "done"
    new = outcome.new_job_id
    assert new is not None
    assert new != job
    ended = bench.wait(new, ["COMPLETED"])
    assert (ended["user_name"], ended["name"], ended["memory_per_node"]["number"]) == (USER, "train", 700)
    assert ended["comment"] == "mine faultline/request=submit1"
    assert ended["nodes"] != "gpu1"
    assert "ran on gpu1" in bench.log_of(job)  # the old log stays for whoever looks
    assert "ran on" in bench.log_of(new)
    found = hook.inspect(wanted, begun_at=LONG_AGO)
    assert found == Settled("done", "it was submitted before the hook ended", new)
    other = hook.inspect(request(job, "submit1", action="submit", extra={"lease_count": 2}), begun_at=None)
    assert isinstance(other, Settled)
    assert other.new_job_id == new


def test_one_task_of_an_array_is_requeued_alone(bench: Bench, hook: SlurmScheduler) -> None:
    job = failed_task(bench, 4)
    assert carry_out(hook, request(job, "array1")).result == "done"
    assert bench.wait(job, ["COMPLETED"])["nodes"] != "gpu1"
    outcome = carry_out(hook, request(failed_task(bench, 5), "array2", action="submit"))
    assert outcome.new_job_id is not None
    assert outcome.new_job_id.endswith("_5")
    assert bench.wait(outcome.new_job_id, ["COMPLETED"])["nodes"] != "gpu1"


def failed_task(bench: Bench, task: int) -> str:
    for _ in range(10):
        base = bench.submit(f'[ "$SLURMD_NODENAME" != gpu1 ] && [ "$SLURM_ARRAY_TASK_ID" = {task} ]', f"--array={task}")
        if bench.wait(f"{base}_{task}", ["FAILED", "COMPLETED"])["nodes"] == "gpu1":
            return f"{base}_{task}"
        time.sleep(0.5)
    raise AssertionError(base)


def test_an_excluded_node_is_removed_from_the_nodes_that_the_job_requests(bench: Bench, hook: SlurmScheduler) -> None:
    job = bench.failed("--nodelist=gpu1")
    carry_out(hook, request(job, "named1"))
    assert bench.wait(job, ["COMPLETED"])["nodes"] != "gpu1"


def test_more_memory_and_time_are_asked_for(bench: Bench, hook: SlurmScheduler) -> None:
    job = bench.failed("--mem=100")
    changes = {"memory_bytes": (200 << 20) - 5, "time_limit_s": 3601, "batch_size": 4}
    carry_out(hook, request(job, "more1", changes=changes))
    ended = bench.wait(job, ["COMPLETED"])
    assert ended["memory_per_node"]["number"] == 200
    assert ended["time_limit"]["number"] == 61


@pytest.mark.parametrize(
    ("nodes", "words"),
    [(("gpu9",), "no node that Slurm knows"), (("gpu1", "gpu2", "gpu3", "gpu4"), "0 nodes are left")],
)
def test_nodes_are_excluded_only_where_the_job_can_still_run(
    bench: Bench, hook: SlurmScheduler, nodes: tuple[str, ...], words: str
) -> None:
    assert words in refused(hook, request(bench.failed(), exclude_nodes=nodes))


def test_a_job_id_that_now_belongs_to_another_user_is_refused(bench: Bench, hook: SlurmScheduler) -> None:
    assert "another user's" in refused(hook, request(bench.failed(), extra={"user": "ana"}))


@pytest.mark.parametrize("job", ["99999", "12+1", "all", "ns/Job/x", "1 2", "-1", "1,2"])
def test_a_job_that_slurm_does_not_know_is_refused(bench: Bench, hook: SlurmScheduler, job: str) -> None:
    assert bench.folder
    assert "Slurm" in refused(hook, request(job))


def test_an_outcome_that_can_no_longer_be_determined_is_reported_as_unknown(bench: Bench, hook: SlurmScheduler) -> None:
    assert bench.folder
    seen = hook.inspect(request("99999", "lost1"), begun_at=LONG_AGO)
    assert isinstance(seen, Settled)
    assert seen.result == "unknown"


def test_an_argument_is_never_more_than_an_argument(bench: Bench, tools: SlurmClient) -> None:
    with pytest.raises(SlurmRefused, match="can't be an argument"):
        tools.update(bench.failed(), {"Comment": "a\nb"})


def test_a_hook_waits_while_slurm_is_unavailable(tmp_path: Path, scripts: ScriptStore) -> None:
    nowhere = SlurmScheduler(SlurmCommands(tmp_path), scripts, SystemClock(), SlurmOptions())
    with pytest.raises(SchedulerUnavailable):
        nowhere.inspect(request("7"), begun_at=None)


def test_a_job_that_slurm_has_forgotten_is_submitted_from_its_saved_script(bench: Bench, hook: SlurmScheduler) -> None:
    """Last in this file: the cluster forgets quickly from now on."""
    script = 'echo "$MODEL on $SLURMD_NODENAME in $SLURM_SUBMIT_DIR"\n[ "$SLURMD_NODENAME" != gpu1 ]'
    job = bench.failed("--comment=mine", "--export=MODEL=vit g", script=script)
    private = bench.failed("--comment=faultline/resubmit=never")
    hook.maintain()
    hook.maintain()
    forget_at_once(bench)
    for one in (job, private):
        assert "Slurm does not know" in refused(hook, request("99998"))
        wait_until_forgotten(bench, one)
    outcome = carry_out(hook, request(job, "saved1"))
    assert outcome.new_job_id is not None
    bench.wait(outcome.new_job_id, ["COMPLETED"])
    submitted_from = bench.share if bench.kind == "lab" else ""
    log = bench.log_of(outcome.new_job_id)
    assert (log.startswith("vit g on gpu"), log.endswith(f" in {submitted_from}\n")) == (True, True), log
    assert "was not saved" in refused(hook, request(private))


def forget_at_once(bench: Bench) -> None:
    if bench.kind == "fake":
        state = bench.folder.parent / "slurm.json"
        state.write_text(state.read_text().replace('"min_job_age": 300', '"min_job_age": 1'))
        return
    assert bench.cluster is not None
    change = "sed -i '1i MinJobAge=2' /etc/slurm/slurm.conf && scontrol reconfigure"
    bench.cluster.run("sh", "-c", change)


def wait_until_forgotten(bench: Bench, job: str) -> None:
    tools = SlurmCommands(bench.folder)
    deadline = time.monotonic() + 90
    while tools.job(job) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.5)
