"""`sacct --parsable2`: how steps of a Slurm job ended, and memory used against memory requested.

Source: the manual page of sacct (JobID, State, ExitCode, DerivedExitCode, Reason, MaxRSS, MaxRSSNode, MaxRSSTask,
ReqMem; Slurm 20.11 to 25.11). ReqMem is per node; up to 20.11 it ends in `n` (per node) or `c` (per CPU).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from classifiers.contracts import DiagnosticFinding, NotDiagnostic

_KIND: Final = "sacct"
# Limits of what is read and shown of one file (judgement: far more than a real one has).
_MOST_ROWS: Final = 2_000
_MOST_SHOWN: Final = 8
_SIZE: Final = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,6})?)(?P<unit>[KMGTP]?)(?P<per>[nc]?)$")
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_GOOD: Final = ("COMPLETED", "COMPLETING", "CONFIGURING", "PENDING", "RESIZING", "RUNNING", "STAGE_OUT", "SUSPENDED")
_NEAR_LIMIT: Final = 0.9  # share of the requested memory (judgement: MaxRSS is sampled every 30 s)
_KILLED: Final = frozenset({"0:125", "0:9", "9:0", "137:0"})
_GIB: Final = 1 << 30


def read_accounting(text: str) -> list[DiagnosticFinding]:
    """Return the steps that did not complete, and those whose memory came close to what was requested.

    Raises:
        NotDiagnostic: the first line is no header with JobID and State.
    """
    lines = [line.rstrip("\r|") for line in text.split("\n") if line.strip()]
    header = lines[0].split("|") if lines else []
    if "JobID" not in header or "State" not in header:
        raise NotDiagnostic("not an output of sacct --parsable2: the first line has no JobID and State")
    found: list[DiagnosticFinding] = []
    requested = ""
    for line in lines[1 : _MOST_ROWS + 1]:
        row = dict(zip(header, (value.strip()[:200] for value in line.split("|")), strict=False))
        requested = row.get("ReqMem") or requested  # a step's row may leave out what the job requested
        found += _of_step({**row, "ReqMem": requested})
    return found[:_MOST_SHOWN]


def _of_step(row: Mapping[str, str]) -> Iterator[DiagnosticFinding]:
    step, state, code = row.get("JobID", ""), row.get("State", ""), row.get("ExitCode", "")
    failed = bool(state) and not state.startswith(_GOOD)
    if failed:
        facts = [f"exit code {code}"] if code else []
        derived = row.get("DerivedExitCode", "")
        facts += [f"highest exit code of its steps {derived}"] if derived not in {"", "0:0", code} else []
        facts += [f"reason {row['Reason']}"] if row.get("Reason") not in {None, "", "None"} else []
        text = f"sacct: {step} ended as {state}" + (f" ({', '.join(facts)})" if facts else "")
        yield DiagnosticFinding(_KIND, text, "context")
    used, limit = _bytes(row.get("MaxRSS", "")), _bytes(row.get("ReqMem", ""))
    if used and limit and used >= _NEAR_LIMIT * limit:
        text = f"sacct: a task of {step} used {used / _GIB:.1f} GiB of the {limit / _GIB:.1f} GiB requested for a node"
        killed = failed and (state.startswith("OUT_OF_ME") or code in _KILLED)
        task = row.get("MaxRSSTask", "")
        yield DiagnosticFinding(
            _KIND,
            text,
            "initiating" if killed else "context",
            rank=int(task) if task.isdecimal() and len(task) < 7 else None,  # noqa: PLR2004 - digits
            node=row.get("MaxRSSNode") or None,
        )


def _bytes(value: str) -> float | None:
    size = _SIZE.match(value)
    if size is None or size["per"] == "c":
        return None
    return float(size["number"]) * _UNITS[size["unit"]]
