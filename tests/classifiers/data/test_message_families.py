"""Messages that different programs print in the same situation are known as one thing, in words of any of them."""

import pytest

from classifiers.extraction.scan import Scanner
from tests.classifiers.packaged_catalogue import SCANNER

FAMILIES = {
    "databases.pool": (
        "HikariPool-3 - Connection is not available, request timed out after 30002ms",
        "psycopg_pool.PoolTimeout: couldn't get a connection after 20.00 sec",
        'FATAL: too many connections for role "loader"',
    ),
    "service.clock-skew": (
        "ssl.SSLCertVerificationError: certificate verify failed: certificate is not yet valid",
        "kinit: Clock skew too great while getting initial credentials",
        "slurmd[3]: error: step 9.1 refused: Job credential expired",
    ),
    "launches.node-failed": (
        "job 5517 was ended (node failure)",
        "Execution server rejected request MSG=cannot send job to mom, state=PRERUN",
        "Task g0/7 is FAILED due to VM reporting timeout with exit code 50002.",
    ),
    "launches.platform-script": (
        "pbs_mom: prologue failed: /pbs/prologue: line 4: dcgmi: command not found",
        "/usr/sbin/health: line 12: NODE: unbound variable",
        "slurmd[7]: spank-epilog: error: rmdir: cannot remove '/raid/x': Permission denied",
    ),
    "queues.limit": (
        "flux-job: exception: type=timeout severity=0",
        "job 7.1 exceeded hard wallclock time - initiate terminate method",
    ),
    "sharing.layer": (
        "[HAMI-core Msg]: cannot open shared region",
        "RuntimeError: CUDA_ERROR_MPS_CONNECTION_FAILED",
    ),
    "spools.full": (
        "slurmstepd: error: write of slurm_script failed: No space left on device",
        "sge_execd: can't write environment of job 71: No space left on device",
        "mkdir /run/containerd/tasks/9a: no space left on device",
    ),
    "topology.graph": (
        "n7:40:52 [1] graph/xml.cc:177 NCCL WARN no topology file",
        "RCCL WARN ring 3 does not loop back to start",
    ),
    "versions.two-sides": (
        "Exception: Python in worker has different version 3.9 than that in driver 3.12",
        "ValueError: unsupported pickle protocol: 6",
        "[n2:11] ORTE version mismatch: mpirun 4.1.5 orted 4.0.2",
    ),
}


@pytest.fixture(scope="module")
def scanner() -> Scanner:
    return SCANNER


def entries(scanner: Scanner, line: str) -> set[str]:
    return {hit.id for found in scanner.scan(line) for hit in found.hits}


@pytest.mark.parametrize(("entry", "line"), [(entry, line) for entry, lines in FAMILIES.items() for line in lines])
def test_the_wordings_of_several_programs_are_one_entry(scanner: Scanner, entry: str, line: str) -> None:
    assert entry in entries(scanner, line)


def test_a_full_directory_of_the_job_is_no_full_disk_of_the_daemons(scanner: Scanner) -> None:
    assert "spools.full" not in entries(scanner, "OSError: [Errno 28] No space left on device: '/scratch/ana/ckpt.pt'")
    assert "spools.full" not in entries(scanner, "tee: /proj/ana/run/out.log: No space left on device")


def test_a_path_of_one_name_belongs_to_the_root_and_a_longer_one_to_a_mount(scanner: Scanner) -> None:
    assert "paths.of-the-image" in entries(scanner, "OSError: [Errno 30] Read-only file system: '/exports'")
    assert "paths.of-the-image" not in entries(scanner, "OSError: [Errno 30] Read-only file system: '/exports/a/b.pt'")
    assert "paths.of-the-image" in entries(scanner, "OSError: [Errno 30] Read-only file system: '/opt/conda/pkgs'")


@pytest.mark.parametrize(
    "line",
    [
        "/var/spool/slurmd/job71/slurm_script: line 14: modul: command not found",
        "/usr/local/bin/entrypoint.sh: line 3: exec: pyton: not found",
        "/usr/bin/bash: line 1: pyton: command not found",
    ],
)
def test_a_script_of_the_job_or_its_image_is_no_script_of_the_platform(scanner: Scanner, line: str) -> None:
    assert "launches.platform-script" not in entries(scanner, line)


def test_a_login_that_ran_out_is_no_difference_of_clocks(scanner: Scanner) -> None:
    assert "service.clock-skew" not in entries(scanner, "the request uses an expired credential of ana")
