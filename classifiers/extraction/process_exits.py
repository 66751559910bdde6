"""Process exits as launchers report them: which process ended, and by which exit code or signal.

Sources: PyTorch elastic (agent line and root-cause report), Slurm `srun`, Open MPI and PRRTE, MPICH and Intel MPI,
DeepSpeed, Lightning, `torch.multiprocessing`, Horovod, Composer.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from signal import SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV
from typing import Final

from classifiers.extraction.line_headers import time_of

_SIGNALS: Final = {
    "killed": 9, "sigkill": 9, "segmentation fault": 11, "sigsegv": 11, "aborted": 6, "sigabrt": 6, "terminated": 15,
    "sigterm": 15, "bus error": 7, "sigbus": 7, "floating point exception": 8, "sigfpe": 8, "illegal instruction": 4,
    "sigill": 4, "interrupt": 2, "sigint": 2, "out of memory": 9, "hangup": 1,
}  # fmt: skip
_SIGNAL_NAMES: Final = tuple(_SIGNALS)
# Longer numbers are neither ranks nor exit codes; nor would they fit where verdicts are stored.
_RANK: Final = r"\d{1,6}(?!\d)"
_CODE: Final = r"\d{1,10}(?!\d)"
_ELASTIC: Final = re.compile(rf"failed \(exitcode: (?P<code>-?{_CODE})\) local_rank: (?P<local>{_RANK})")
_SRUN: Final = re.compile(
    r"(?:srun|slurmstepd|mpiexec|prun): (?:error: )?(?P<node>[\w.-]+): tasks? (?P<ranks>[\d,\-\[\]]+): "
    r"(?P<how>[A-Z][^\n]{0,60})"
)
_MPI_SIGNAL: Final = re.compile(
    rf"process rank (?P<rank>{_RANK}) with PID \d+ on node (?P<node>\S+) exited on\ssignal (?P<signal>{_RANK})"
)
_MPI_NAME: Final = re.compile(
    rf"Process name: (?:\[(?:\[\d+,\d+\]|[^\[\]]{{1,80}}),(?P<mpi>{_RANK})\]|(?P<plain>{_RANK})[ \t]*$)", re.MULTILINE
)
_DEEPSPEED: Final = re.compile(
    rf"--local_rank=(?P<local>{_RANK})\b.{{0,2000}}exits with return code = (?P<code>-?{_CODE})"
)
_LIGHTNING: Final = re.compile(
    rf"\[rank: (?P<rank>{_RANK})\] Child process with PID \d+ terminated with code (?P<code>-?{_CODE})"
)
_HOROVOD: Final = re.compile(rf"\bProcess (?P<rank>\d{{1,5}}) exit with status code (?P<code>{_CODE})")
_MPICH_NOTICE: Final = "BAD TERMINATION OF ONE OF YOUR"
_MPICH_PROCESS: Final = re.compile(
    rf"^=\s{{1,8}}(?:RANK (?P<rank>{_RANK}) )?PID \d+ RUNNING AT (?P<node>[\w.-]{{1,200}})\s{{1,8}}"
    rf"^=\s{{1,8}}(?:EXIT (?:CODE|STATUS): (?P<code>{_CODE})|KILLED BY SIGNAL: (?P<signal>{_RANK}))",
    re.MULTILINE,
)
_SPAWN: Final = re.compile(
    r"(?i)\bprocess (?P<rank>\d{1,5}) terminated with "
    rf"(?:(?P<sig>signal \w+)|exit code (?P<code>{_CODE})|the following)"
)
# Composer: "Rank 3 crashed with exit code -9." and "Global rank 3 (PID 91) exited with code 1".
_PLAIN: Final = re.compile(
    r"\b[Rr]ank (?P<rank>\d{1,6})(?: \([^)\n]{1,40}\))? (?:crashed|exited|died|failed|terminated) with "
    r"(?:exit |return )?(?:code|status):? (?P<code>-?\d{1,5})\b"
)
_EXIT_CODE: Final = re.compile(rf"(?i)exit(?:ed with exit)? code:?\s+(?P<code>{_CODE})")
_MPI_NOTICE: Final = "detected that one or more processes"
_MPI_ERROR: Final = re.compile(r"reported by process \[\d{1,12},(?P<rank>\d{1,6})\]")
_MPI_DUE: Final = re.compile(rf"due to process rank (?P<rank>{_RANK})\b")
_ROOT_CAUSE: Final = "Root Cause (first observed failure)"
_ROOT_CAUSE_FIELD: Final = re.compile(r"^[^\n]{0,40}?\b(time|host|rank|exitcode)\s*: (\S+)", re.MULTILINE)
_ONLY_RANK: Final = re.compile(_RANK)
_ONLY_CODE: Final = re.compile(f"-?{_CODE}")
# Signals that a process does not send itself when others fail.
_VIOLENT: Final = frozenset({SIGILL, SIGBUS, SIGFPE, SIGKILL, SIGSEGV})
# Exit codes 128 + n: a shell's report of signal n. Above 31 come Linux's real-time signals, which nothing here sends.
_SIGNAL_BASE: Final = 128
_SIGNAL_END: Final = 160
# Characters after a line that belong to its notice, and of a root-cause report (judgement).
_NOTICE_RANGE: Final = 300
_SIGNAL_RANGE: Final = 40
_ROOT_CAUSE_RANGE: Final = 1_500
_MAX_RANKS: Final = 4_096  # larger ranges are no lists of tasks (judgement)


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """One process that ended with an error, as a launcher reports it.

    Attributes:
        rank: its rank.
        local_rank: its rank on its node.
        node: its node.
        exit_code: its exit code, negative for a signal.
        signal: the signal that ended it; None where it ended itself.
        time: seconds into the year.
        reported_first: whether the launcher names it as the first to end.
        sees_all_ranks: whether the launcher started all ranks, not only those of one node.
    """

    rank: int | None = None
    local_rank: int | None = None
    node: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    time: float | None = None
    reported_first: bool = False
    sees_all_ranks: bool = False

    @property
    def is_violent(self) -> bool:
        """Whether it ended by a signal that a process does not send itself when others fail."""
        return self.signal in _VIOLENT


def signal_of(exit_code: int | None) -> int | None:
    """The signal that an exit code stands for (negative, or 128 + n), None if it stands for none."""
    if exit_code is None:
        return None
    if exit_code < 0:
        return -exit_code
    return exit_code - _SIGNAL_BASE if _SIGNAL_BASE < exit_code < _SIGNAL_END else None


def parse_ranks(listed: str) -> list[int]:
    """The ranks of a list as Slurm writes it: `1,4-6`, `[0, 2]`; at most 4,096."""
    out: list[int] = []
    for part in listed.strip("[]").replace(" ", ",").split(","):
        first, dash, last = part.partition("-")
        if not dash and _ONLY_RANK.fullmatch(part) is not None:
            out.append(int(part))
        elif _ONLY_RANK.fullmatch(first) and _ONLY_RANK.fullmatch(last) and int(last) - int(first) < _MAX_RANKS:
            out += range(int(first), int(last) + 1)
    return out[:_MAX_RANKS]


def find_exits(line: str, following: str = "") -> Sequence[ProcessExit]:
    """The exits that a launcher's line reports.

    Args:
        line: the line.
        following: the text after it, for notices of several lines.
    """
    for read in _READERS:
        found = read(line, following)
        if found is not None:
            return found
    return ()


def _elastic(line: str, _following: str) -> Sequence[ProcessExit] | None:
    """The agent of PyTorch elastic, and DeepSpeed."""
    hit = (_ELASTIC.search(line) or _DEEPSPEED.search(line)) if "local_rank" in line else None
    if hit is None:
        return None
    code = int(hit["code"])
    return (ProcessExit(local_rank=int(hit["local"]), exit_code=code, signal=signal_of(code), time=time_of(line)),)


def _srun(line: str, _following: str) -> Sequence[ProcessExit] | None:
    hit = _SRUN.search(line) if ": task" in line else None
    if hit is None:
        return None
    code, number = _parse_reason(hit["how"])
    time = time_of(line)
    return [
        ProcessExit(rank=rank, node=hit["node"], exit_code=code, signal=number, time=time)
        for rank in parse_ranks(hit["ranks"])
    ]


def _parse_reason(reason: str) -> tuple[int | None, int | None]:
    """Exit code and signal of a reason such as `Killed` or `Exited with exit code 1`."""
    low = reason.lower()
    if low.startswith(_SIGNAL_NAMES):
        return None, next(number for word, number in _SIGNALS.items() if low.startswith(word))
    hit = _EXIT_CODE.search(reason)
    code = int(hit["code"]) if hit else None
    return code, signal_of(code)


def _mpi_signal(line: str, following: str) -> Sequence[ProcessExit] | None:
    """The notice of Open MPI, which versions from 5.0 on break before the signal."""
    if "exited on" not in line:
        return None
    hit = _MPI_SIGNAL.search(line) or _MPI_SIGNAL.search(line + following[:_SIGNAL_RANGE])
    if hit is None:
        return None
    return (_first_exit(int(hit["rank"]), node=hit["node"], signal=int(hit["signal"])),)


def _first_exit(
    rank: int, *, node: str | None = None, code: int | None = None, signal: int | None = None
) -> ProcessExit:
    """An exit that a launcher of all ranks names as the first."""
    return ProcessExit(rank=rank, node=node, exit_code=code, signal=signal, reported_first=True, sees_all_ranks=True)


def _lightning(line: str, _following: str) -> Sequence[ProcessExit] | None:
    hit = _LIGHTNING.search(line) if "Child process" in line else None
    if hit is None:
        return None
    code = int(hit["code"])
    return (_first_exit(int(hit["rank"]), code=code, signal=signal_of(code)),)


def _mpi_name(line: str, following: str) -> Sequence[ProcessExit] | None:
    """The notice of Open MPI that names the first process some lines below."""
    hit = _MPI_NAME.search(line) if "Process name: " in line else None
    if hit is None and _MPI_NOTICE in line:
        hit = _MPI_NAME.search(following[:_NOTICE_RANGE])
    if hit is None:
        return None
    found = _EXIT_CODE.search(following[:_NOTICE_RANGE])
    code = int(found["code"]) if found else None
    return (_first_exit(int(hit["mpi"] or hit["plain"]), code=code, signal=signal_of(code)),)


def _mpi_error(line: str, following: str) -> Sequence[ProcessExit] | None:
    hit = _MPI_DUE.search(line) if "due to process rank " in line else None
    after = following[:_NOTICE_RANGE]
    if hit is None and "An error occurred in MPI_" in line and "MPI_ERR_PROC_FAILED" not in after:
        hit = _MPI_ERROR.search(after)
    return None if hit is None else (_first_exit(int(hit["rank"])),)


def _horovod(line: str, _following: str) -> Sequence[ProcessExit] | None:
    hit = _HOROVOD.search(line) if "exit with status" in line else None
    if hit is None:
        return None
    code = int(hit["code"])
    return (ProcessExit(rank=int(hit["rank"]), exit_code=code, signal=signal_of(code), sees_all_ranks=True),)


def _mpich_notice(line: str, following: str) -> Sequence[ProcessExit] | None:
    """The notice of MPICH and Intel MPI, which name the process below it."""
    hit = _MPICH_PROCESS.search(following[:_NOTICE_RANGE]) if _MPICH_NOTICE in line else None
    if hit is None:
        return None
    code = int(hit["code"]) if hit["code"] else None
    number = int(hit["signal"]) if hit["signal"] else signal_of(code)
    return (ProcessExit(int(hit["rank"]) if hit["rank"] else None, None, hit["node"], code, number),)


def _spawn(line: str, _following: str) -> Sequence[ProcessExit] | None:
    """`torch.multiprocessing`. Beyond ASCII, letters of other alphabets may match where case is ignored."""
    hit = _SPAWN.search(line) if not line.isascii() or "terminated with " in line.lower() else None
    if hit is None:
        return None
    number = _SIGNALS.get(hit["sig"].lower().removeprefix("signal ")) if hit["sig"] else None
    return (_first_exit(int(hit["rank"]), code=int(hit["code"]) if hit["code"] else None, signal=number),)


def _plain(line: str, _following: str) -> Sequence[ProcessExit] | None:
    hit = _PLAIN.search(line) if "ank " in line and " with " in line else None
    if hit is None:
        return None
    code = int(hit["code"])
    return (
        (ProcessExit(rank=int(hit["rank"]), exit_code=code, signal=signal_of(code), time=time_of(line)),)
        if code
        else ()
    )


# The first that knows a line decides.
_READERS: Final[tuple[Callable[[str, str], Sequence[ProcessExit] | None], ...]] = (
    _elastic, _srun, _mpi_signal, _lightning, _mpi_name, _mpi_error, _horovod, _mpich_notice, _spawn, _plain,
)  # fmt: skip


def is_root_cause_report(line: str) -> bool:
    """Whether a line is the headline of a torchelastic root-cause report."""
    return _ROOT_CAUSE in line


def root_cause_exit(text: str, offset: int) -> ProcessExit | None:
    """The root cause of the torchelastic report whose headline is at `offset`: the first exit that one agent saw."""
    found = _ROOT_CAUSE_FIELD.finditer(text, offset, offset + _ROOT_CAUSE_RANGE)
    fields = dict(reversed([(one[1], one[2]) for one in found]))
    if _ONLY_RANK.fullmatch(fields.get("rank", "")) is None:
        return None
    written = fields.get("exitcode", "")
    code = int(written) if _ONLY_CODE.fullmatch(written) is not None else None
    return ProcessExit(
        rank=int(fields["rank"]),
        node=fields.get("host"),
        exit_code=code,
        signal=signal_of(code),
        time=time_of(fields.get("time", "").replace("_", " ")),
        reported_first=True,
    )
