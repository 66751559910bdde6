"""What a scheduler's log says of an end, and which process and node it is about."""

from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.extraction.benign_lines import is_variable
from classifiers.extraction.ranks import ranks_of_event
from tests.classifiers.packaged_catalogue import EXTRACTOR

ENDED = datetime(2026, 11, 20, 10, tzinfo=UTC)
STEPS = "".join(f"2026-11-20 09:{minute:02d}:00 step {minute} loss 2.0\n" for minute in range(1, 58))
STOPPED = "slurmstepd: error: *** STEP 31.0 ON hc1 CANCELLED AT 2026-11-20T10:00:00 ***\n"


def first_line(scheduler: str, log: str = "") -> str:
    logs = (LogStream(STEPS + log, rank=0, node="hc1"), LogStream(scheduler, stream="scheduler", node="hc1"))
    found = EXTRACTOR.extract(RawCase(JobFacts(status="cancelled", nodes=("hc1",), ended_at=ENDED), logs)).items
    return next(item.text for item in found if item.role == "initiating")


@pytest.mark.parametrize(
    "reason",
    [
        "slurmctld: _slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=31 uid 2210",
        "sitewatch: GPU utilisation below 3% for 90 minutes, the job is cancelled (policy on idle devices)",
    ],
)
def test_who_ended_a_job_comes_before_what_its_logs_show_of_it(reason: str) -> None:
    assert first_line(reason + "\n", STOPPED) == reason


@pytest.mark.parametrize(
    ("line", "is_setting"),
    [("SLURM_GPUS_ON_NODE=8", True), ("export NCCL_DEBUG=INFO", True), ("EXIT_CODE=137", False), ("loss=2.0", False)],
)
def test_how_a_variable_is_set_is_no_beginning(line: str, *, is_setting: bool) -> None:
    assert is_variable(line) is is_setting


@pytest.mark.parametrize(("ranks", "suspect"), [((0, 8, 16), 16), ((0, 1, 2), 2)])
def test_the_number_of_a_task_is_no_rank_where_each_task_starts_several(ranks: tuple[int, ...], suspect: int) -> None:
    logs = tuple(LogStream(STEPS, rank=rank, node=f"hc{number}") for number, rank in enumerate(ranks))
    report = "srun: error: hc2: task 2: Out Of Memory\n"
    job = JobFacts(status="out_of_memory", nodes=("hc0", "hc1", "hc2"), gpus=24, ended_at=ENDED)
    found = EXTRACTOR.extract(RawCase(job, (*logs, LogStream(report, stream="scheduler")))).case.suspect
    assert found is not None
    assert found.rank == suspect


@pytest.mark.parametrize(("nodes", "ranks"), [(("hc2",), {16}), (("hc1", "hc2"), set())])
def test_a_file_server_that_one_node_misses_points_to_the_ranks_there(nodes: tuple[str, ...], ranks: set[int]) -> None:
    logs = tuple(LogStream(STEPS, rank=8 * number, node=f"hc{number}") for number in range(3))
    lost = tuple(
        NodeEvent("nfs: server fs9 not responding, timed out", ENDED - timedelta(seconds=160), node, "kernel")
        for node in nodes
    )
    error = LogStream(STEPS + "OSError: [Errno 5] Input/output error: '/ckpt/part'\n", rank=17, node="hc2")
    job = JobFacts(status="failed", nodes=("hc0", "hc1", "hc2"), gpus=24, ended_at=ENDED)
    raw = RawCase(job, (*logs, error), node_events=lost)
    assert ranks_of_event(raw, EXTRACTOR.extract(raw).items) == (ranks | {17} if ranks else set())
