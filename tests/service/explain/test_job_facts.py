import pytest

from service.contracts.event import Status
from service.explain.job_facts import JobEnd, guess, nodes_of_loss, of_accounting

TASK = "srun: error: gpu3: task 2: Exited with exit code 1"
CANCELLED = "slurmstepd: error: *** {} ON gpu1 CANCELLED AT 2026-11-20T10:00:00 ***"
BUILD = 'ERROR: failed to solve: process "/bin/sh -c pip install --no-cache-dir -r /app/requirements.txt" did not '


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("KeyError: 'x'", JobEnd()),
        ("srun: error: gpu1: task 3: Exited with exit code 7", JobEnd(exit_code=7, scheduler="slurm")),
        (
            "slurmstepd: error: *** JOB 12 ON gpu1 CANCELLED AT 2026-11-20T10:00:00 DUE TO TIME LIMIT ***",
            JobEnd(Status.TIMEOUT, scheduler="slurm"),
        ),
        (
            "slurmstepd: error: *** STEP 12.0 ON gpu1 CANCELLED AT 2026-11-20T10:00:00 ***",
            JobEnd(Status.CANCELLED, scheduler="slurm"),
        ),
        (
            "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM Killed.",
            JobEnd(Status.OUT_OF_MEMORY, scheduler="slurm"),
        ),
        (
            (
                "srun: error: gpu2: task 1: Segmentation fault\nsrun: Terminating StepId=12.0\n"
                "slurmstepd: error: *** STEP 12.0 ON gpu1 CANCELLED AT 2026-11-20T10:00:00 ***"
            ),
            JobEnd(scheduler="slurm"),
        ),
        (
            (
                "srun: error: gpu2: task 1: Exited with exit code 7\n"
                "slurmstepd: error: *** STEP 12.0 ON gpu1 CANCELLED AT 2026-11-20T10:00:00 ***\n"
                "srun: error: gpu1: task 0: Terminated"
            ),
            JobEnd(exit_code=7, scheduler="slurm"),
        ),
        (
            (
                "slurmstepd: error: *** STEP 12.0 ON gpu1 CANCELLED AT 2026-11-20T10:00:00 ***\n"
                "srun: error: gpu1: task 0: Exited with exit code 143"
            ),
            JobEnd(Status.CANCELLED, exit_code=143, scheduler="slurm"),
        ),
        ("  exitcode  : -9 (pid: 4711)", JobEnd(signal=9)),
        (
            "[2026-11-20 03:41:58,100] [ERROR] [launch.py:341:sigkill_handler] ['x.py'] exits with return code = -9",
            JobEnd(signal=9),
        ),
        ("[rank: 2] Child process with PID 4712 terminated with code -11. Forcefully terminating", JobEnd(signal=11)),
        (
            "mpirun noticed that process rank 4 with PID 57 on node gpu018 exited on\nsignal 11 (Segmentation fault).",
            JobEnd(signal=11),
        ),
        ("##[error]Process completed with exit code 1.", JobEnd(exit_code=1)),
        ("command terminated with exit code 137", JobEnd(exit_code=137)),
        ("make: *** [Makefile:3: prog] Error 2", JobEnd(exit_code=2)),
        ("run.sh: line 4:  4711 Segmentation fault      (core dumped) ./solver", JobEnd(signal=11)),
        (f"{TASK}\n{CANCELLED.format('JOB 12')}", JobEnd(Status.CANCELLED, exit_code=1, scheduler="slurm")),
        (f"{BUILD}complete successfully: exit code: 2", JobEnd(exit_code=2)),
        ("  Process `ALIGN (s7)` terminated with an error exit status (137)", JobEnd(exit_code=137)),
        ("mpirun noticed that process rank 5 with PID 102 on node n7 exited on signal 9 (Killed).", JobEnd(signal=9)),
        ("Segmentation fault (core dumped)", JobEnd(signal=11)),
        ("Terminated: 15", JobEnd(signal=15)),
        ("Aborted connection 12 to db: 'jobs' user: 'ana'", JobEnd()),
        ("Terminated early: the loss did not improve", JobEnd()),
        ("worker finished with exit code 0\nKeyError: 'x'", JobEnd()),
        ("we saw exit code 5000 tokens", JobEnd()),
    ],
)
def test_the_end_of_a_job_is_read_from_launchers_and_shells(text: str, end: JobEnd) -> None:
    assert guess([f"step 1 loss 2\n{text}\n"]) == end


@pytest.mark.parametrize(
    ("row", "end"),
    [
        ("77|OUT_OF_MEMORY|0:125", JobEnd(Status.OUT_OF_MEMORY, scheduler="slurm")),
        ("77|OUT_OF_ME+|0:125", JobEnd(Status.OUT_OF_MEMORY, scheduler="slurm")),
        ("77|CANCELLED by 1000|0:15", JobEnd(Status.CANCELLED, signal=15, scheduler="slurm")),
        ("77|FAILED|3:0", JobEnd(exit_code=3, scheduler="slurm")),
        ("77|TIMEOUT|0:0", JobEnd(Status.TIMEOUT, scheduler="slurm")),
        ("77|NODE_FAIL|0:1", JobEnd(Status.NODE_FAIL, scheduler="slurm")),
        ("77|FAILED|0:53", JobEnd(scheduler="slurm")),  # an output file that cannot be opened, no signal
        ("77|COMPLETED|0:0", None),
        ("77|²|9999:x", None),
        ("", None),
    ],
)
def test_the_end_of_a_job_is_read_from_the_accounting_of_slurm(row: str, end: JobEnd | None) -> None:
    assert of_accounting(f"JobID|State|ExitCode\n{row}\n77.0|FAILED|9:0\n" if row else "JobID|State|ExitCode\n") == end


def test_nodes_are_read_from_the_lines_of_slurm_where_it_reports_that_one_failed() -> None:
    of_job = "slurmstepd: error: *** JOB 9 ON gpu16 CANCELLED AT 2026-11-29T03:12:44 DUE TO NODE FAILURE ***\n"
    assert nodes_of_loss([f"srun: error: Node failure on gpu17\n{of_job}"]) == ("gpu17", "gpu16")
    assert nodes_of_loss([of_job]) == ()
