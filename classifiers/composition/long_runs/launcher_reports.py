"""What launchers and schedulers say in the end, and how they mark the lines of ranks that pass through them."""

import random
from collections.abc import Callable, Sequence
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


def marker(  # noqa: C901, PLR0911 - one return a launcher
    launcher: str, job: str, local: Sequence[int], pids: Sequence[int], ips: Sequence[str], hosts: Sequence[str]
) -> Callable[[int, datetime], str]:
    """What stands before each line of a rank; `local`, `pids`, `ips`, `hosts` by rank."""
    if launcher == "torchrun-tee":
        return lambda rank, at: f"[default{local[rank]}]:"
    if launcher == "srun-l":
        return lambda rank, at: f"{rank:{len(str(len(local) - 1))}d}: "
    if launcher == "mpirun-tag":
        return lambda rank, at: f"[1,{rank}]<stderr>:"
    if launcher == "prterun-tag":
        return lambda rank, at: f"[prterun-{hosts[0]}-{pids[0]}@1,{rank}]<stderr>: "
    if launcher == "mpiexec-l":
        return lambda rank, at: f"[{rank}] "
    if launcher == "horovodrun":
        return lambda rank, at: f"[{rank}]<stderr>:"
    if launcher == "horovodrun-ts":
        return lambda rank, at: f"{at:%a %b %d %H:%M:%S %Y}[{rank}]<stderr>:"
    if launcher == "kubectl":
        return lambda rank, at: f"[pod/{_pod(job, rank)}/pytorch] "
    if launcher == "stern":
        return lambda rank, at: f"{_pod(job, rank)} pytorch "
    if launcher == "docker":
        return lambda rank, at: f"{'worker-' + str(rank):<{7 + len(str(len(local) - 1))}}  | "
    if launcher == "pdsh":
        return lambda rank, at: f"{hosts[rank]}: "
    if launcher == "ray":
        return lambda rank, at: f"(RayTrainWorker pid={pids[rank]}, ip={ips[rank]}) "
    return lambda rank, at: ""


def _pod(job: str, rank: int) -> str:
    return f"{job}-master-0" if rank == 0 else f"{job}-worker-{rank - 1}"


def exit_words(code: int) -> str:
    """How srun tells an exit."""
    if code < 0 or code > 128:
        return SIGNALS.get(-code if code < 0 else code - 128, f"Signal {code}")
    return f"Exited with exit code {code}"


def torchrun(
    at: datetime, script: str, host: str, failures: Sequence[tuple[datetime, int, int, int, int]], agent: int, py: str
) -> list[str]:
    """An agent's words: (time, rank, local rank, pid, exit code) of its failures, the first observed first."""
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
    told = (
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
        f"  traceback : {told}",
    ]


def mpirun(rank: int, pid: int, host: str, code: int, rng: random.Random) -> list[str]:
    """Open MPI's last words."""
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
    """MPICH's last words, which name no rank."""
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
    """Words of srun on (rank, host, exit code), in order of the ends."""
    rank, host, code = deaths[0]
    lines = [
        f"srun: error: {host}: task {rank}: {exit_words(code)}",
        f"srun: Terminating StepId={job}.0",
        f"slurmstepd: error: *** STEP {job}.0 ON {host} CANCELLED AT {at:%Y-%m-%dT%H:%M:%S} ***",
    ]
    return lines + [f"srun: error: {host}: task {rank}: {exit_words(code)}" for rank, host, code in deaths[1:]]


def horovodrun(rank: int, others: Sequence[int], code: int) -> list[str]:
    """Words of horovodrun."""
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
    """DeepSpeed's launcher on a node."""
    tsm = f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}"
    return [
        *[f"[{tsm}] [INFO] [launch.py:319:sigkill_handler] Killing subprocess {pid}" for pid in pids],
        (
            f"[{tsm}] [ERROR] [launch.py:325:sigkill_handler] ['{py}', '-u', '{script}', '--local_rank={local}', "
            f"'--deepspeed', 'ds_config.json'] exits with return code = {code}"
        ),
    ]
