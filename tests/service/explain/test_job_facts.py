import pytest

from service.contracts.event import Status
from service.explain.job_facts import JobEnd, guess


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
        ("  exitcode  : -9 (pid: 4711)", JobEnd(signal=9)),
        ("##[error]Process completed with exit code 1.", JobEnd(exit_code=1)),
        ("command terminated with exit code 137", JobEnd(exit_code=137)),
        ("make: *** [Makefile:3: prog] Error 2", JobEnd(exit_code=2)),
        ("run.sh: line 4:  4711 Segmentation fault      (core dumped) ./solver", JobEnd(signal=11)),
        ("worker finished with exit code 0\nKeyError: 'x'", JobEnd()),
        ("we saw exit code 5000 tokens", JobEnd()),
    ],
)
def test_the_end_of_a_job_is_read_from_launchers_and_shells(text: str, end: JobEnd) -> None:
    assert guess([f"step 1 loss 2\n{text}\n"]) == end
