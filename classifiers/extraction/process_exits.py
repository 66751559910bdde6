"""Which process died how, as launchers tell it, and which ranks others say are missing.

Sources: PyTorch elastic (agent line and root-cause report), Slurm `srun`, Open MPI and PRRTE, DeepSpeed, Lightning,
`torch.multiprocessing`, Horovod, JAX and TensorFlow coordination, `monitored_barrier`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from classifiers.extraction.line_headers import time_of
from classifiers.extraction.line_shapes import has_one

_SIGNALS: Final = {
    "killed": 9, "sigkill": 9, "segmentation fault": 11, "sigsegv": 11, "aborted": 6, "sigabrt": 6, "terminated": 15,
    "sigterm": 15, "bus error": 7, "sigbus": 7, "floating point exception": 8, "sigfpe": 8, "illegal instruction": 4,
    "sigill": 4, "interrupt": 2, "sigint": 2, "out of memory": 9, "hangup": 1,
}  # fmt: skip
_ELASTIC: Final = re.compile(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+)")
_SRUN: Final = re.compile(
    r"(?:srun|slurmstepd|mpiexec|prun): (?:error: )?(?P<node>[\w.-]+): tasks? (?P<ranks>[\d,\-\[\]]+): "
    r"(?P<how>[A-Z][^\n]{0,60})"
)
_MPI_SIGNAL: Final = re.compile(
    r"process rank (?P<rank>\d+) with PID \d+ on node (?P<node>\S+) exited on signal (?P<signal>\d+)"
)
_MPI_NAME: Final = re.compile(r"Process name: (?:\[(?:\[\d+,\d+\]|[^\[\]]{1,80}),(?P<mpi>\d+)\]|(?P<plain>\d+)\s*$)")
_DEEPSPEED: Final = re.compile(r"--local_rank=(?P<local>\d+)\b.{0,2000}exits with return code = (?P<code>-?\d+)")
_LIGHTNING: Final = re.compile(
    r"\[rank: (?P<rank>\d+)\] Child process with PID \d+ terminated with code (?P<code>-?\d+)"
)
_HOROVOD: Final = re.compile(r"\bProcess (?P<rank>\d{1,5}) exit with status code (?P<code>\d+)")
_MPICH: Final = re.compile(r"^=\s{1,8}EXIT CODE: (?P<code>\d+)")
_SPAWN: Final = re.compile(
    r"(?i)\bprocess (?P<rank>\d{1,5}) terminated with (?:(?P<sig>signal \w+)|exit code (?P<code>\d+)|the following)"
)
_EXIT: Final = re.compile(r"(?i)exit(?:ed with exit)? code:?\s+(?P<code>\d+)")
_TASK: Final = re.compile(r"/job:(?:jax_worker|worker|ps|chief)/replica:\d+/task:(?P<rank>\d+)")
_MPI_FIRST: Final = "detected that one or more processes"
_MPI_ERROR: Final = re.compile(r"reported by process \[\d{1,12},(?P<rank>\d{1,6})\]")
_DUE: Final = re.compile(r"due to process rank (?P<rank>\d+)\b")
_ABSENT: Final = (
    re.compile(r"(?i)\bstraggl\w*\W{1,3}(?:is )?rank (?P<ranks>\d+)|\bslow(?:est)? rank\W{1,3}(?P<slow>\d+)"),
    re.compile(
        r"(?i)ranks? (?P<ranks>[\d, ]+) "
        r"(?:failed to pass monitored|did not (?:join|reach|call)|never (?:joined|arrived))"
    ),
    re.compile(r"(?i)(?:missing|absent|waiting (?:on|for)|stalled) ranks?[^\w\n]{0,3}(?P<ranks>\d+(?:[, ]+\d+)*)"),
    re.compile(r"(?i)(?:missing|absent) (?:workers?|tasks?)\W{0,3}(?P<ranks>\d+(?:[, ]+\d+)*)"),
    re.compile(r"(?i)\[(?P<ranks>\d+(?:[, ]+\d+)*)\] (?:did not|have not|has not) (?:join|respon)"),
    re.compile(r"wait timeout after \d+ms, keys: /default_pg/\S{0,80}?/(?P<ranks>\d{1,6})(?:\s|$)"),
    re.compile(r"while rank (?P<ranks>\d+) has inconsistent"),
    re.compile(r"(?i)\bTask (?P<ranks>\d+) heartbeat timeout"),
)  # fmt: skip
# One of these stands in all that these find in ASCII (elsewhere letters of other alphabets may stand for ours).
_ABSENT_PARTS: Final = (
    "rank", "missing worker", "missing task", "absent worker", "absent task", " not join", " not respon",
    "/default_pg/", "heartbeat timeout",
)  # fmt: skip
_REPORT: Final = "Root Cause (first observed failure)"
_REPORT_FIELD: Final = re.compile(r"^[^\n]{0,40}?\b(time|host|rank|exitcode)\s*: (\S+)", re.MULTILINE)
_STALLED: Final = re.compile(r"Missing ranks:\s{0,8}\n(?:[^\n]{0,80}?[>\]:\s])?(?P<rank>\d{1,6}): \[")
_LOST_WORDS: Final = (
    "remote target",
    "straggler",
    "set to error",
    "unhealthy",
    "heartbeat",
    "lost",
    "stopped",
    "disconnected",
    "preempted",
    "died",
    "unavailable",
)


@dataclass(frozen=True, slots=True)
class Death:
    """One process that ended badly. `signal` None: it left by itself with `code`. `told`: a launcher calls it first.

    `sure`: the launcher started all ranks and saw them all, not those of one node.
    """

    rank: int | None = None
    local: int | None = None
    node: str | None = None
    code: int | None = None
    signal: int | None = None
    time: float | None = None
    told: bool = False
    sure: bool = False

    @property
    def violent(self) -> bool:
        """Ended by a signal that the process does not send itself when others fail: kill, segfault, bus, illegal."""
        return self.signal in {4, 7, 8, 9, 11}


def signal_of(code: int | None) -> int | None:
    """The signal behind an exit code: negative, or 128 + n."""
    if code is None:
        return None
    if code < 0:
        return -code
    return code - 128 if 128 < code < 160 else None  # noqa: PLR2004 - the shell's way to write signals


def _ranks(raw: str) -> list[int]:
    out: list[int] = []
    for part in raw.strip("[]").replace(" ", ",").split(","):
        if "-" in part:
            first, _, last = part.partition("-")
            if first.isdigit() and last.isdigit() and int(last) - int(first) < 4096:  # noqa: PLR2004 - a sane range
                out += range(int(first), int(last) + 1)
        elif part.isdigit():
            out.append(int(part))
    return out


def _by_words(how: str) -> tuple[int | None, int | None]:
    low = how.lower()
    for word, number in _SIGNALS.items():
        if low.startswith(word):
            return None, number
    hit = _EXIT.search(how)
    code = int(hit["code"]) if hit else None
    return code, signal_of(code)


def deaths(line: str, following: str = "") -> Iterator[Death]:  # noqa: PLR0911 - one return a launcher
    """The deaths that a launcher's line tells; `following`: the text behind it, for notices of two lines."""
    hit = (_ELASTIC.search(line) or _DEEPSPEED.search(line)) if "local_rank" in line else None
    if hit is not None:
        code = int(hit["code"])
        yield Death(local=int(hit["local"]), code=code, signal=signal_of(code), time=time_of(line))
        return
    hit = _SRUN.search(line) if ": task" in line else None
    if hit is not None:
        left, number = _by_words(hit["how"])
        for rank in _ranks(hit["ranks"]):
            yield Death(rank=rank, node=hit["node"], code=left, signal=number, time=time_of(line))
        return
    hit = _MPI_SIGNAL.search(line) if "exited on signal" in line else None
    if hit is not None:
        yield Death(rank=int(hit["rank"]), node=hit["node"], signal=int(hit["signal"]), told=True, sure=True)
        return
    hit = _LIGHTNING.search(line) if "Child process" in line else None
    if hit is not None:
        code = int(hit["code"])
        yield Death(rank=int(hit["rank"]), code=code, signal=signal_of(code), told=True, sure=True)
        return
    named = _MPI_NAME.search(line) if "Process name: " in line else None
    hit = named or (_MPI_NAME.search(following[:300]) if _MPI_FIRST in line else None)
    if hit is not None:
        code_hit = _EXIT.search(following[:300])
        left = int(code_hit["code"]) if code_hit else None
        yield Death(rank=int(hit["mpi"] or hit["plain"]), code=left, signal=signal_of(left), told=True, sure=True)
        return
    due = _DUE.search(line) if "due to process rank " in line else None
    hit = due or (
        _MPI_ERROR.search(following[:300])
        if "An error occurred in MPI_" in line and "MPI_ERR_PROC_FAILED" not in following[:300]
        else None
    )
    if hit is not None:
        yield Death(rank=int(hit["rank"]), told=True, sure=True)
        return
    hit = _HOROVOD.search(line) if "exit with status" in line else None
    if hit is not None:
        left = int(hit["code"])
        yield Death(rank=int(hit["rank"]), code=left, signal=signal_of(left), sure=True)
        return
    hit = _MPICH.match(line)
    if hit is not None:
        yield Death(code=int(hit["code"]))
        return
    spawned = not line.isascii() or "terminated with " in line.lower()
    hit = _SPAWN.search(line) if spawned else None
    if hit is not None:
        number = _SIGNALS.get(hit["sig"].lower().removeprefix("signal ")) if hit["sig"] else None
        yield Death(
            rank=int(hit["rank"]), code=int(hit["code"]) if hit["code"] else None, signal=number, told=True, sure=True
        )


def report(text: str, at: int) -> Death | None:
    """The root cause of a torchelastic report whose headline stands at `at`; only as true as that one agent's view."""
    fields = dict(reversed([(one[1], one[2]) for one in _REPORT_FIELD.finditer(text, at, at + 1_500)]))
    if not fields.get("rank", "").isdigit():
        return None
    code = fields.get("exitcode", "")
    number = int(code) if code.lstrip("-").isdigit() else None
    return Death(
        rank=int(fields["rank"]),
        node=fields.get("host"),
        code=number,
        signal=signal_of(number),
        time=time_of(fields.get("time", "").replace("_", " ")),
        told=True,
    )


def is_report(line: str) -> bool:
    """Whether the line is the headline of a torchelastic root-cause report."""
    return _REPORT in line


def absent(line: str, following: str = "") -> list[int]:
    """The ranks that a line says did not come, did not answer or died elsewhere."""
    low = line.lower()
    if not line.isascii() or has_one(low, _ABSENT_PARTS):
        for pattern in _ABSENT:
            hit = pattern.search(line, 0, 1_500)
            if hit is not None:
                return _ranks(hit["ranks"] or hit["slow"])
    hit = _STALLED.search(line + "\n" + following[:400]) if "Missing ranks" in line else None
    if hit is not None:
        return [int(hit["rank"])]
    if has_one(low, _LOST_WORDS):
        tasks = [int(one["rank"]) for one in _TASK.finditer(line + "\n" + following[:300])]
        if tasks:
            return tasks[:4]
    return []
