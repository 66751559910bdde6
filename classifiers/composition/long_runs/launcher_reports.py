"""Final reports of launchers and schedulers, and the prefixes that they add to the lines of ranks."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

SIGNALS = {9: "Killed", 11: "Segmentation fault", 6: "Aborted", 7: "Bus error", 15: "Terminated"}
NAMES = {9: "SIGKILL", 11: "SIGSEGV", 6: "SIGABRT", 7: "SIGBUS", 15: "SIGTERM"}
BORDER = "=" * 60
RULE = "-" * 60

# Launchers by framework; the plain one first is drawn twice as often.
LAUNCHERS = {
    "pytorch": ("torchrun", "torchrun", "torchrun-tee", "torchrun-files", "srun", "srun-l", "srun-files", "kubectl",
                "stern", "pods", "docker", "pdsh"),
    "gloo": ("torchrun", "torchrun-tee", "srun-l", "torchrun-files", "pods"),
    "deepspeed": ("deepspeed", "deepspeed", "pdsh"),
    "mpi": ("mpirun", "mpirun-tag", "prterun-tag", "mpiexec-l", "srun-l", "srun"),
    "horovod": ("horovodrun", "horovodrun-ts", "mpirun-tag"),
    "jax": ("srun-l", "pods", "kubectl", "srun-files"),
    "tensorflow": ("pods", "kubectl", "srun-l", "docker"),
    "ray": ("ray",),
}  # fmt: skip
FILES = frozenset({"torchrun-files", "srun-files", "pods"})


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the ranks of a job run; `local`, `pids`, `ips` and `hosts` by rank."""

    job: str
    local: Sequence[int]
    pids: Sequence[int]
    ips: Sequence[str]
    hosts: Sequence[str]


# The prefix of a rank's lines by launcher; other launchers add no prefix.
_PREFIXES: Mapping[str, Callable[[Placement, int, datetime], str]] = {
    "torchrun-tee": lambda job, rank, at: f"[default{job.local[rank]}]:",
    "srun-l": lambda job, rank, at: f"{rank:{len(str(len(job.local) - 1))}d}: ",
    "mpirun-tag": lambda job, rank, at: f"[1,{rank}]<stderr>:",
    "prterun-tag": lambda job, rank, at: f"[prterun-{job.hosts[0]}-{job.pids[0]}@1,{rank}]<stderr>: ",
    "mpiexec-l": lambda job, rank, at: f"[{rank}] ",
    "horovodrun": lambda job, rank, at: f"[{rank}]<stderr>:",
    "horovodrun-ts": lambda job, rank, at: f"{at:%a %b %d %H:%M:%S %Y}[{rank}]<stderr>:",
    "kubectl": lambda job, rank, at: f"[pod/{_pod(job.job, rank)}/pytorch] ",
    "stern": lambda job, rank, at: f"{_pod(job.job, rank)} pytorch ",
    "docker": lambda job, rank, at: f"{'worker-' + str(rank):<{7 + len(str(len(job.local) - 1))}}  | ",
    "pdsh": lambda job, rank, at: f"{job.hosts[rank]}: ",
    "ray": lambda job, rank, at: f"(RayTrainWorker pid={job.pids[rank]}, ip={job.ips[rank]}) ",
}


def prefix_of(launcher: str, placement: Placement) -> Callable[[int, datetime], str]:
    """Return a function for the prefix that a launcher adds to each line of a rank."""
    prefix = _PREFIXES.get(launcher)
    return lambda rank, at: prefix(placement, rank, at) if prefix is not None else ""


def _pod(job: str, rank: int) -> str:
    return f"{job}-master-0" if rank == 0 else f"{job}-worker-{rank - 1}"


def exit_words(code: int) -> str:
    """Describe an exit code in the wording of srun."""
    if code < 0 or code > 128:
        return SIGNALS.get(-code if code < 0 else code - 128, f"Signal {code}")
    return f"Exited with exit code {code}"


def torchrun(
    at: datetime, script: str, host: str, failures: Sequence[tuple[datetime, int, int, int, int]], agent: int, py: str
) -> list[str]:
    """Return the report of an agent. `failures`: (time, rank, local rank, pid, exit code), in order of observation."""
    first = failures[0]
    glog = f"{at:%m%d %H:%M:%S}.{at.microsecond // 1000:03d}000 {agent}"
    lines = [
        (
            f"E{glog} torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {first[4]}) "
            f"local_rank: {first[2]} (pid: {first[3]}) of binary: {py}"
        ),
        "Traceback (most recent call last):",
        f'  File "{py.rsplit("/", 1)[0]}/torchrun", line 8, in <module>',
        "    sys.exit(main())",
        f"{at:%Y-%m-%dT%H:%M:%S} torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        BORDER,
        f"{script} FAILED",
        RULE,
        "Failures:",
    ]
    if len(failures) == 1:
        lines.append("  <NO_OTHER_FAILURES>")
    for number, one in enumerate(failures[1:], 1):
        lines += _failure(number, host, one)
    return [*lines, RULE, "Root Cause (first observed failure):", *_failure(0, host, first), BORDER]


def _failure(number: int, host: str, one: tuple[datetime, int, int, int, int]) -> list[str]:
    at, rank, local, pid, code = one
    traceback = (
        f"Signal {-code} ({NAMES.get(-code, 'SIG')}) received by PID {pid}"
        if code < 0
        else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    )
    return [
        f"[{number}]:",
        f"  time      : {at:%Y-%m-%d_%H:%M:%S}",
        f"  host      : {host}",
        f"  rank      : {rank} (local_rank: {local})",
        f"  exitcode  : {code} (pid: {pid})",
        "  error_file: <N/A>",
        f"  traceback : {traceback}",
    ]


def mpirun(rank: int, pid: int, host: str, code: int, rng: random.Random) -> list[str]:
    """Return the final report of Open MPI."""
    rule = "-" * 74
    if code < 0:
        return [
            rule,
            (
                f"mpirun noticed that process rank {rank} with PID {pid} on node {host} exited on signal {-code} "
                f"({SIGNALS.get(-code, 'Unknown')})."
            ),
            rule,
        ]
    return [
        rule,
        "mpirun detected that one or more processes exited with non-zero status, thus causing",
        "the job to be terminated. The first process to do so was:",
        "",
        f"  Process name: [[{rng.randint(2000, 64000)},1],{rank}]",
        f"  Exit code:    {code}",
        rule,
    ]


def mpich(pid: int, host: str, code: int) -> list[str]:
    """Return the final report of MPICH, which names no rank."""
    return [
        "=" * 83,
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        f"=   PID {pid} RUNNING AT {host}",
        f"=   EXIT CODE: {-code if code < 0 else code}",
        "=   CLEANING UP REMAINING PROCESSES",
        "=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES",
        "=" * 83,
    ]


def srun(job: str, deaths: Sequence[tuple[int, str, int]], at: datetime) -> list[str]:
    """Return the report of srun. `deaths`: (rank, host, exit code) in order of time."""
    rank, host, code = deaths[0]
    lines = [
        f"srun: error: {host}: task {rank}: {exit_words(code)}",
        f"srun: Terminating StepId={job}.0",
        f"slurmstepd: error: *** STEP {job}.0 ON {host} CANCELLED AT {at:%Y-%m-%dT%H:%M:%S} ***",
    ]
    return lines + [f"srun: error: {host}: task {rank}: {exit_words(code)}" for rank, host, code in deaths[1:]]


def horovodrun(rank: int, others: Sequence[int], code: int) -> list[str]:
    """Return the report of horovodrun."""
    plain = 128 - code if code < 0 else code
    return [
        f"Process {rank} exit with status code {plain}.",
        f"Terminating remaining workers after failure of Process {rank}.",
        *[f"Process {other} exit with status code 143." for other in others],
        (
            "RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus causing the job to be "
            "terminated. The first process to do so was:"
        ),
        f"Process name: {rank}",
        f"Exit code: {plain}",
    ]


def deepspeed(at: datetime, pids: Sequence[int], py: str, script: str, local: int, code: int) -> list[str]:
    """Return the report of DeepSpeed's launcher on a node."""
    tsm = f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}"
    return [
        *[f"[{tsm}] [INFO] [launch.py:319:sigkill_handler] Killing subprocess {pid}" for pid in pids],
        (
            f"[{tsm}] [ERROR] [launch.py:325:sigkill_handler] ['{py}', '-u', '{script}', '--local_rank={local}', "
            f"'--deepspeed', 'ds_config.json'] exits with return code = {code}"
        ),
    ]
