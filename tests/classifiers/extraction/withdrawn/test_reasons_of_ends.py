"""What a scheduler's log says of an end, and which process and node it is about."""

from datetime import UTC, datetime, timedelta

import pytest

from classifiers import signatures
from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner

EXTRACTOR = Extractor(Scanner(signatures.packaged()))
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


def test_how_a_variable_is_set_is_no_beginning() -> None:
    raw = RawCase(
        JobFacts(status="cancelled", nodes=("hc1",), ended_at=ENDED),
        (LogStream("SLURM_GPUS_ON_NODE=8\nSLURM_NNODES=4\n" + STEPS + STOPPED, rank=0, node="hc1"),),
    )
    assert not any("SLURM_" in item.text for item in EXTRACTOR.extract(raw).items if item.role == "initiating")


@pytest.mark.parametrize(("ranks", "suspect"), [((0, 8, 16), 16), ((0, 1, 2), 2)])
def test_the_number_of_a_task_is_no_rank_where_each_task_starts_several(ranks: tuple[int, ...], suspect: int) -> None:
    logs = tuple(LogStream(STEPS, rank=rank, node=f"hc{number}") for number, rank in enumerate(ranks))
    report = "srun: error: hc2: task 2: Out Of Memory\n"
    job = JobFacts(status="out_of_memory", nodes=("hc0", "hc1", "hc2"), gpus=24, ended_at=ENDED)
    found = EXTRACTOR.extract(RawCase(job, (*logs, LogStream(report, stream="scheduler")))).case.suspect
    assert found is not None
    assert found.rank == suspect


@pytest.mark.parametrize(("nodes", "suspect"), [(("hc2",), 16), (("hc1", "hc2"), None)])
def test_the_one_client_of_a_file_server_that_lost_it_has_the_suspect_rank(
    nodes: tuple[str, ...], suspect: int | None
) -> None:
    error = "OSError: [Errno 5] Input/output error: '/ckpt/step-57/part'\n"
    logs = tuple(LogStream(STEPS + error, rank=8 * number, node=f"hc{number}") for number in range(3))
    lost = tuple(
        NodeEvent("nfs: server fs9 not responding, timed out", ENDED - timedelta(seconds=160), node, "kernel")
        for node in nodes
    )
    job = JobFacts(status="failed", nodes=("hc0", "hc1", "hc2"), gpus=24, ended_at=ENDED)
    found = EXTRACTOR.extract(RawCase(job, logs, node_events=lost)).case.suspect
    assert found is not None
    assert (found.rank == 16) is (suspect == 16)
