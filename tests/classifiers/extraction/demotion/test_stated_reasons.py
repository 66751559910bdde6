"""What a log states as the reason comes before the state that follows from it, such as a lost node."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction.evidence_items import EvidenceItem
from tests.classifiers.packaged_catalogue import EXTRACTOR

LOST = "srun: error: Node failure on ai7"
NO_DEVICE = "RuntimeError: No CUDA GPUs are available"
DIFFERS = "Failed to initialize NVML: Driver/library version mismatch"


def items_of(*lines: str, status: str = "failed") -> list[EvidenceItem]:
    job = JobFacts(status=status, scheduler="slurm")
    return EXTRACTOR.extract(RawCase(job=job, streams=(LogStream("\n".join(lines), stream="stderr"),))).items


def leading(*lines: str, status: str = "failed") -> str | None:
    first = next(item for item in items_of(*lines, status=status) if item.role == "initiating")
    strength = {"decisive": 0, "strong": 1, "weak": 2}
    hits = sorted((hit for hit in first.hits if hit.role == "initiating"), key=lambda hit: strength[hit.strength])
    return hits[0].id if hits else None


@pytest.mark.parametrize(
    "reason",
    [
        "slurmd[88]: fatal: Unable to determine this slurmd's NodeName",
        "dockerd[9]: failed to start daemon: pid file found, ensure docker is not running",
    ],
)
def test_a_daemon_that_says_why_it_does_not_start_leads(reason: str) -> None:
    assert leading(reason, status="node_fail") == "nodes.daemon-refuses-start"
    assert leading("step 7 loss 2.0", status="node_fail") != "nodes.daemon-refuses-start"


@pytest.mark.parametrize(
    "announced",
    [
        "Broadcast message from root@ai7: The system is going down for reboot at 06:00!",
        "slurmctld: node ai7 rebooting for firmware update",
    ],
)
def test_a_node_that_is_restarted_on_purpose_did_not_fail(announced: str) -> None:
    assert leading(announced, LOST) == "nodes.restart-announced"
    assert leading("slurmctld: node ai7 firmware is up to date", LOST) == "slurm.node-not-responding"


@pytest.mark.parametrize("chosen", ["+ CUDA_VISIBLE_DEVICES=5 python fit.py", "CUDA_VISIBLE_DEVICES="])
def test_devices_that_a_command_hides_are_not_lost(chosen: str) -> None:
    assert leading(chosen, NO_DEVICE) == "cuda.chosen-devices-not-there"
    assert leading("CUDA_VISIBLE_DEVICES=0,1,2,3", NO_DEVICE) == "cuda.no-gpus-available"


def test_parts_of_the_driver_that_a_job_installs_are_its_own() -> None:
    assert leading("+ apt-get install -y nvidia-utils-550", DIFFERS) == "nvidia.own-driver-parts-differ"
    assert leading("+ apt-get install -y git", DIFFERS) == "nvidia.nvml-mismatch"


@pytest.mark.parametrize(("limit", "first"), [(True, "TimeoutError"), (False, "asyncio.exceptions.CancelledError")])
def test_the_limit_that_cancelled_a_task_leads_that_it_was_cancelled(*, limit: bool, first: str) -> None:
    frame = 'Traceback (most recent call last):\n  File "/home/ana/a.py", line 7, in main\n    await queue.get()\n'
    log = f"{frame}asyncio.exceptions.CancelledError\n"
    if limit:
        log += f"\nThe above exception was the direct cause of the following exception:\n\n{frame}TimeoutError\n"
    items = EXTRACTOR.extract(RawCase(JobFacts(status="failed"), (LogStream(log, rank=0),))).items
    assert next(item.text for item in items if item.role == "initiating") == first
