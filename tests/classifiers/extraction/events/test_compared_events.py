"""What lines and events say of the same disk or device; attempts of one job in one log."""

from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.extraction.evidence_items import ExtractedCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

ENDED = datetime(2026, 11, 20, 10, tzinfo=UTC)
FAULT = "RuntimeError: CUDA error: an illegal memory access was encountered\n"
SCRIPT = "loading modules for the run\n+ srun python train.py --resume\n"
STEPS = "".join(f"2026-11-20 09:{n:02}:00 step {n} loss 1.5\n" for n in range(1, 20))
REQUEUED = "slurmstepd: error: *** JOB 8 ON b1 CANCELLED AT 2026-11-20T09:50:00 DUE TO {why} ***\n"
EXISTS = "FileExistsError: [Errno 17] File exists: '/scratch/out'\n"


def extracted(*logs: LogStream, events: tuple[NodeEvent, ...] = ()) -> ExtractedCase:
    job = JobFacts(
        status="failed",
        scheduler="slurm",
        nodes=("b1", "b2"),
        gpus=16,
        started_at=ENDED - timedelta(hours=1),
        ended_at=ENDED,
    )
    return EXTRACTOR.extract(RawCase(job=job, streams=logs, node_events=events))


def entries(*logs: LogStream, events: tuple[NodeEvent, ...] = ()) -> set[str]:
    """The entries that a case's lines match and whose conditions hold."""
    hits = (hit for item in extracted(*logs, events=events).items for hit in item.hits)
    return {hit.id for hit in hits if hit.role == "initiating"}


def happened(text: str, before_end_s: int, node: str = "b2") -> NodeEvent:
    return NodeEvent(text, ENDED - timedelta(seconds=before_end_s), node, "kernel")


@pytest.mark.parametrize(
    ("report", "is_own"),
    [
        ("/scr is full (98%): 2.9T run_71, 0.2T run_64", True),
        ("/scr is full (98%): /scr/run_71: 2900 GB", True),
        ("/scr is full (98%): 0.2T run_71, 2.9T run_64", False),
        ("/scr is full (98%)", False),
    ],
)
def test_who_holds_the_space_of_a_full_disk_is_read_from_the_node(report: str, *, is_own: bool) -> None:
    log = LogStream("OSError: [Errno 28] No space left on device: '/scr/run_71/dump/9.npz'\n", rank=3, node="b2")
    found = entries(log, events=(happened(report, 60),))
    assert ("python.no-space-own" in found) is is_own
    assert ("python.no-space" in found) is not is_own


def xid(device: str, before_end_s: int) -> NodeEvent:
    return happened(f"NVRM: Xid (PCI:0000:{device}:00): 31, pid=77, name=python, MMU Fault", before_end_s)


def test_a_fault_that_stays_on_one_device_while_ranks_move_is_of_the_device() -> None:
    log = LogStream(f"[rank13]: {FAULT}job attempt 2\n[rank5]: {FAULT}", node="b1")
    labelled = LogStream(f"13: [rank13]: {FAULT}job attempt 2\n 5: [rank5]: {FAULT}", node="b1")
    again = (xid("3b", 3_000), xid("3b", 20))
    assert "cuda.illegal-access-again" in entries(log, events=again)
    assert "cuda.illegal-access-again" in entries(labelled, events=again)
    assert "cuda.illegal-access-again" not in entries(log, events=(xid("3b", 3_000), xid("9d", 20)))
    assert "cuda.illegal-access-again" not in entries(log, events=(xid("3b", 25), xid("3b", 20)))
    assert "cuda.illegal-access-again" not in entries(LogStream(f"[rank5]: {FAULT}[rank5]: {FAULT}"), events=again)


def test_ranks_are_distinguished_where_a_launcher_labels_the_lines() -> None:
    assert "cuda.illegal-access-on-several" in entries(LogStream(f"0: [rank0]: {FAULT}9: [rank9]: {FAULT}"))
    assert "cuda.illegal-access-on-several" not in entries(LogStream(f"9: [rank9]: {FAULT}9: [rank9]: {FAULT}"))


@pytest.mark.parametrize("why", ["PREEMPTION", "NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS", "JOB REQUEUE"])
def test_what_ended_an_attempt_is_no_beginning_of_the_next_one(why: str) -> None:
    log = LogStream(SCRIPT + STEPS + REQUEUED.format(why=why) + SCRIPT + EXISTS, node="b1")
    event = happened("preempted JobId=8 has been requeued to reclaim resources for JobId=9", 601, "b1")
    found = extracted(log, events=(event,))
    assert found.case.evidence[0].text == EXISTS.strip()
    assert [item.text for item in found.items if item.role == "initiating"] == [EXISTS.strip()]


def test_a_job_that_was_not_started_again_ended_by_what_its_log_says() -> None:
    log = LogStream(SCRIPT + STEPS + REQUEUED.format(why="PREEMPTION") + "srun: Job step aborted\n", node="b1")
    event = happened("preempted JobId=8 has been requeued to reclaim resources for JobId=9", 601, "b1")
    assert "slurm.preempted" in [hit.id for hit in extracted(log, events=(event,)).items[0].hits]


def test_a_device_that_failed_in_an_earlier_attempt_does_not_explain_the_last_one() -> None:
    lost = happened("NVRM: Xid (PCI:0000:3b:00): 79, pid=77, name=python, GPU has fallen off the bus.", 595, "b1")
    error = "RuntimeError: CUDA error: unspecified launch failure\n"
    again = SCRIPT + STEPS + REQUEUED.format(why="NODE FAILURE") + SCRIPT + error
    assert extracted(LogStream(SCRIPT + error, node="b1"), events=(lost,)).items[0].text == lost.text
    assert extracted(LogStream(again, node="b1"), events=(lost,)).items[0].text == error.strip()
