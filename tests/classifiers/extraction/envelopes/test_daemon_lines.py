"""Lines that daemons and the kernel print say in a log what they say as events of a node."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction.envelopes.daemon_lines import is_of_daemon
from tests.classifiers.packaged_catalogue import EXTRACTOR

CANCELLED = "_slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=5120 uid 3307"


def entries_of(log: str, job_id: str | None = None, role: str = "") -> set[str]:
    raw = RawCase(job=JobFacts(status="failed", job_id=job_id), streams=(LogStream(log, stream="stderr"),))
    return {hit.id for item in EXTRACTOR.extract(raw).items for hit in item.hits if role in {"", item.role}}


@pytest.mark.parametrize(
    "line",
    [
        "Mar  3 11:02:09 gpu7 slurmctld[1402]: node gpu9 now down",
        "slurmctld: node gpu9 now down",
        "[ 9123.114021] nvme nvme1: controller is down",
        "[Mon Mar  3 11:02:09 2025] nvme nvme1: controller is down",
        "[2025-03-03T11:02:09.114] cleanup of a node",
        "NVRM: GPU at PCI:0000:41:00",
        "pcieport 0000:40:01.1: link is down",
        "2025-03-03T11:02:09.114021000Z NVRM: GPU at PCI:0000:41:00",
        "2025-03-03T11:02:09.114021000Z stdout F [39430123.297664] nvme nvme1: controller is down",
        "2025-03-03 11:02:09 [Mon Mar  3 11:02:09 2025] nvme nvme1: controller is down",
    ],
)
def test_the_header_tells_that_a_daemon_or_the_kernel_printed_a_line(line: str) -> None:
    assert is_of_daemon(line)


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: the kernel: size has to be odd",
        "[rank3] kernel: size has to be odd",
        "[2025-03-03T11:02:09.114] [5120.batch] task 0 ended",
        "[rank0]: RuntimeError: nvidia driver",
        "INFO 03-03 11:02:09 loading slurmctld.log",
    ],
)
def test_lines_of_programs_are_none_of_daemons(line: str) -> None:
    assert not is_of_daemon(line)


def test_a_line_of_the_controller_in_a_log_tells_who_ended_the_job() -> None:
    assert "slurm.killed-by-owner" in entries_of(f"step 4\n[2025-03-03T11:02:09.114] {CANCELLED}\n")


def test_a_program_that_prints_the_same_words_is_no_controller() -> None:
    assert "slurm.killed-by-owner" not in entries_of(f"step 4\nreplayed: {CANCELLED}\n")


def test_a_change_in_a_log_is_no_beginning_of_its_own() -> None:
    line = "systemd[1]: nvidia driver was updated from 550.54 to 550.90"
    assert not any(name.startswith("changes.") for name in entries_of(f"{line}\nValueError: wrong shape\n"))


@pytest.mark.parametrize(
    ("more", "job_id", "leads"),
    [
        ("", "5120", True),
        ("", None, True),
        ("\nKeyError: 'x'", "7", False),
        ("\nslurmstepd: error: *** JOB 5120 ON gpu7 CANCELLED AT 2025-03-03T11:02:10 ***", None, True),
        ("\nsrun: error: StepId=7.0 failed\n", None, False),
    ],
)
def test_what_the_controller_did_to_another_job_is_no_beginning(more: str, job_id: str | None, *, leads: bool) -> None:
    log = f"[2025-03-03T11:02:09.114] {CANCELLED}{more}"
    assert ("slurm.killed-by-owner" in entries_of(log, job_id, "initiating")) == leads
