"""Guesses how a job ended from the words of its log: status, exit code, signal and scheduler.

Only lines of the schedulers, launchers and shells that ended the job count; what the program itself prints is evidence,
no fact. Sources: slurmstepd and srun (Slurm 24.11), torchelastic's error report, DeepSpeed, Lightning, Open MPI,
kubectl, GNU make, Docker, GitHub Actions, GitLab CI, bash.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from service.contracts.event import Status
from service.errors import UnreadableRecord

_END: Final = 256 * 1024  # characters: these lines are at the end of a log
_MOST: Final = 255

_STATUS: Final = (
    (re.compile(r"(?i)\bCANCELLED AT \S+ DUE TO TIME LIMIT\b"), Status.TIMEOUT),
    (re.compile(r"(?i)\bCANCELLED AT \S+ DUE TO PREEMPTION\b"), Status.PREEMPTED),
    (re.compile(r"(?i)\bCANCELLED AT \S+ DUE TO NODE FAILURE\b"), Status.NODE_FAIL),
    (re.compile(r"(?i)\bDetected \d+ oom[-_]kill event|\bReason: +OOMKilled\b"), Status.OUT_OF_MEMORY),
    (re.compile(r"\bslurmstepd: error: \*\*\* JOB \S+ ON \S+ CANCELLED AT [-\dT:]+ \*\*\*"), Status.CANCELLED),
)
_STEP_CANCELLED: Final = re.compile(r"\bslurmstepd: error: \*\*\* STEP \S+ ON \S+ CANCELLED AT [-\dT:]+ \*\*\*")
# A task failed, for which srun ends the step with its other tasks.
_TASK_FAILED: Final = re.compile(r"\bsrun: error: \S{1,200}: tasks? [^\n]{1,200}: Exited with exit code")
_ENDED_BY_SRUN: Final = re.compile(r"\bsrun: Terminating (?:StepId=|job step )")
_LOST_NODE: Final = re.compile(r"^srun: error: Node failure on (?P<node>[\w.-]{1,100})[ \t]*$", re.MULTILINE)
_OTHER_NODE: Final = re.compile(
    r"^(?:srun: error: (?P<task>[\w.-]{1,100}): tasks? "
    r"|slurmstepd: error: \*{3} (?:JOB|STEP) \S+ ON (?P<own>[\w.-]{1,100}) )",
    re.MULTILINE,
)
_EXIT_CODE: Final = re.compile(
    r"^(?:[^\n]{0,80}?\bsrun: error: [^\n]{0,200}?: Exited with exit code (?P<srun>\d{1,3})"
    r"|[^\n]{0,60}?##\[error\]Process completed with exit code (?P<actions>\d{1,3})"
    r"|[^\n]{0,60}?ERROR: Job failed: exit (?:code|status) (?P<gitlab>\d{1,3})"
    r"|[^\n]{0,60}?\bcommand terminated with exit code (?P<kubectl>\d{1,3})"
    r"|[^\n]{0,1000}?\bdid not complete successfully: exit code: (?P<docker>\d{1,3})"
    r"|[^\n]{0,80}?\bterminated with an error exit status \((?P<nextflow>\d{1,3})\)"
    r"|[^\n]{0,80}?\bexit(?:ed with|s with|) (?:exit )?(?:code|status):? (?P<other>\d{1,3})\b"
    r"|[^\n]{0,80}?\b[Ee]xit(?:code| ?[Cc]ode|_code) {0,3}[:=] {0,6}(?P<report>-?\d{1,3})\b"
    r"|with errorcode (?P<mpi>\d{1,3})\."
    r"|\[20\d\d-[^\n]{0,4000}?\] exits with return code = (?P<deepspeed>-?\d{1,3})\b"
    r"|[^\n]{0,60}?\bChild process with PID \d{1,10} terminated with code (?P<lightning>-?\d{1,3})\b"
    r"|g?make(?:\[\d+\])?: \*\*\* [^\n]{0,200}? Error (?P<make>\d{1,3})$)",
    re.MULTILINE,
)
# A shell adds the command where it names the line of its script. Without that, words that follow are a program's own.
_SIGNALLED: Final = re.compile(
    r"^(?:(?P<shell>[^\n]{0,200}?: line \d{1,6}: +\d{1,8} )|)(?P<name>Segmentation fault|Killed|Aborted|Bus error"
    r"|Illegal instruction|Floating point exception|Terminated)(?:: \d{1,2})?(?: +\(core dumped\))?"
    r"(?(shell)(?=\s|$)|[ \t]*$)",
    re.MULTILINE,
)
_MPI_SIGNAL: Final = re.compile(
    r"^[^\n]{0,40}?\bnoticed that process rank \d{1,6} with PID \d{1,10} on node \S{1,200} "
    r"exited on\ssignal (\d{1,2})\b",
    re.MULTILINE,
)
_SIGNAL_NUMBER: Final = {
    "Segmentation fault": 11, "Killed": 9, "Aborted": 6, "Bus error": 7, "Illegal instruction": 4,
    "Floating point exception": 8, "Terminated": 15,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended; None where the log does not show it."""

    status: Status = Status.FAILED
    exit_code: int | None = None
    signal: int | None = None
    scheduler: str | None = None


def guess(texts: Iterable[str]) -> JobEnd:
    """Guess how a job ended from its logs."""
    ends = [text[-_END:] for text in texts]
    whole = "\n".join(ends)
    status = next((status for pattern, status in _STATUS if pattern.search(whole)), None)
    if status is None:
        status = Status.CANCELLED if _is_step_cancelled(whole) else Status.FAILED
    code = _reported_code(whole)
    signal: int | None = None
    if code is None:
        signal = _reported_signal(whole)
    elif code < 0:  # as Python reports a process that a signal ended
        signal, code = -code, None
    is_slurm = "slurmstepd: " in whole or "srun: " in whole
    return JobEnd(status, code, signal, "slurm" if is_slurm else None)


def _reported_signal(text: str) -> int | None:
    """Return the last signal that a shell reports, else the last one that MPI's launcher reports."""
    of_shells = [_SIGNAL_NUMBER[found["name"]] for found in _SIGNALLED.finditer(text)]
    return next(reversed(of_shells or [int(found[1]) for found in _MPI_SIGNAL.finditer(text)]), None)


def _is_step_cancelled(text: str) -> bool:
    """Whether a step was cancelled, and not by srun because a task failed before."""
    cancelled = _STEP_CANCELLED.search(text)
    if cancelled is None or _ENDED_BY_SRUN.search(text) is not None:
        return False
    return _TASK_FAILED.search(text, 0, cancelled.start()) is None


def nodes_of_loss(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the nodes that Slurm reports as failed, then the others that it names; nothing where it reports none."""
    whole = "\n".join(text[-_END:] for text in texts)
    lost = [found["node"] for found in _LOST_NODE.finditer(whole)]
    others = (found["task"] or found["own"] for found in _OTHER_NODE.finditer(whole))
    return tuple(dict.fromkeys([*lost, *others])) if lost else ()


def of_accounting(text: str) -> JobEnd | None:
    """Return how a job ended by `sacct --parsable2`: its first row, which is of the job itself; None if not failed."""
    from service.formats.slurm.job import STATES, exit_and_signal  # noqa: PLC0415 - start-up: few logs come with it

    header, _, rows = text.lstrip("\ufeff\r\n").partition("\n")
    row = dict(zip(header.strip().split("|"), rows.partition("\n")[0].strip().split("|"), strict=False))
    words = row.get("State", "").split()
    state = words[0].removesuffix("+") if words else ""
    found = next((name for name in STATES if state and name.startswith(state)), "COMPLETED")
    if STATES[found] is Status.SUCCEEDED:
        return None
    try:
        code, signal = exit_and_signal(row.get("ExitCode"), found)
    except UnreadableRecord:
        code, signal = None, None
    return JobEnd(STATES[found], exit_code=code or None, signal=signal, scheduler="slurm")


def _reported_code(text: str) -> int | None:
    """Return the last exit code other than 0 that a launcher reports; a negative one is a signal."""
    codes = [int(value) for found in _EXIT_CODE.finditer(text) for value in found.groups() if value is not None]
    return next((code for code in reversed(codes) if code and abs(code) <= _MOST), None)
