"""Diagnostic files among the logs of a job: how they are recognised, their findings, node events and log text."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from classifiers.contracts import (
    DIAGNOSTIC_KINDS,
    FLIGHT_RECORDER,
    DiagnosticEvidence,
    DiagnosticFinding,
    LogStream,
    NodeEvent,
    NotDiagnostic,
)
from classifiers.diagnostic_files.dmesg import read_kernel_lines
from classifiers.diagnostic_files.nccl_ras import read_ras
from classifiers.diagnostic_files.nvidia_smi import read_gpu_states
from classifiers.diagnostic_files.py_spy import read_stacks
from classifiers.diagnostic_files.sacct import read_accounting
from classifiers.diagnostic_files.torchrun_error import read_error_file
from classifiers.redaction import redact

_MOST_CHARS: Final = 1024 * 1024  # of one file
_MOST_FINDINGS: Final = 24  # of all files (judgement)
_TEXT: Final = 400  # characters of a finding that are shown (judgement)
TITLES: Final = {
    FLIGHT_RECORDER: "Flight Recorder", "torchrun_error": "torchrun error file", "nvidia_smi": "nvidia-smi",
    "dmesg": "dmesg", "sacct": "sacct", "nccl_ras": "NCCL RAS", "py_spy": "py-spy",
}  # fmt: skip
_FORMS: Final = {"nvidia_smi": "output", "dmesg": "output", "sacct": "output", "nccl_ras": "output", "py_spy": "dump"}
_FINDINGS: Final[dict[str, Callable[[str], list[DiagnosticFinding]]]] = {"sacct": read_accounting, "nccl_ras": read_ras}
# By what a person's files are recognised, whatever their names.
_PICKLE: Final = b"\x80"
_IN_RECORDS: Final = (b"collective_seq_id", b"pg_config", b"pg_status")
_BEGINS: Final = {
    "torchrun_error": re.compile(r'\{\s{0,8}"message"\s{0,8}:\s{0,8}\{\s{0,8}"(?:message|extraInfo)"'),
    "nvidia_smi": re.compile(r"={5,40}NVSMI LOG={5,40}"),
    # Seconds since boot, or a date before the name of a part of the kernel: programs write dates in this form too.
    "dmesg": re.compile(
        r"(?:<\d{1,3}>|[a-z]{3,8} {0,4}:[a-z]{3,7} {0,4}: )?(?:\[ {0,11}\d{1,11}\.\d{6}\] |"
        r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] (?=[^\n]{0,400}?"
        r"\b(?:NVRM:|nvidia-nvswitch|mlx\d_|pcieport|nvme|EXT4-fs|XFS|EDAC|mce:|[Oo]ut of memory|Linux version|Lustre"
        r"|nfs:|[\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.\d)))"
    ),
    "nccl_ras": re.compile(r'(?s)(?:\{.{0,8000}?"communicators"\s{0,8}:|(?:.{0,2000}\n)?Job summary\n=+\n)'),
    "py_spy": re.compile(r"Process \d{1,9}: [^\n]{0,4000}\nPython v\d"),
}


@dataclass(slots=True)
class DiagnosticFiles:
    """What the diagnostic files of a job show.

    Attributes:
        logs: streams that are read like logs: the exceptions of torchrun's error files.
        node_events: the states of GPUs.
        evidence: findings, and why files can't be read; None if there are no diagnostic files.
    """

    logs: list[LogStream] = field(default_factory=list)
    node_events: list[NodeEvent] = field(default_factory=list)
    evidence: DiagnosticEvidence | None = None


def read_diagnostic_files(streams: Sequence[LogStream]) -> DiagnosticFiles:
    """Return what the diagnostic files among `streams` show; a stream of a diagnostic file has its kind as name."""
    files = [stream for stream in streams if stream.stream in DIAGNOSTIC_KINDS]
    out = DiagnosticFiles()
    if not files:
        return out
    findings: list[DiagnosticFinding] = []
    unreadable: list[str] = []
    for file in files:
        if file.missing is not None:
            unreadable.append(f"{_title(file)}: {file.missing}")
        elif file.stream != "py_spy":
            try:
                findings += _read(file, out)
            except NotDiagnostic as error:
                unreadable.append(f"{_title(file)}: {error}")
    findings += _stacks([file for file in files if file.stream == "py_spy" and file.missing is None], unreadable)
    cut = tuple(replace(finding, text=finding.text[:_TEXT]) for finding in findings[:_MOST_FINDINGS])
    out.evidence = DiagnosticEvidence(cut, tuple(unreadable))
    return out


def _read(one: LogStream, out: DiagnosticFiles) -> list[DiagnosticFinding]:
    text = one.text[:_MOST_CHARS]
    if one.stream == "torchrun_error":
        exception, rank = read_error_file(text)
        exception = redact(exception)  # the text of the file is redacted, but escapes of JSON may hide a secret in it
        rank = one.rank if one.rank is not None else rank
        if rank is not None:  # as launchers label the lines of a rank
            exception = "".join(f"[rank{rank}]: {line}\n" for line in exception.splitlines())
        out.logs.append(replace(one, text=exception, rank=rank, windows=()))
        return []
    if one.stream == "nvidia_smi":
        states = read_gpu_states(text)
        out.node_events += [NodeEvent(state, node=one.node, source="nvidia-smi") for state in states]
        return []
    if one.stream == "dmesg":
        lines = read_kernel_lines(one.text[-_MOST_CHARS:])  # the end of the job is at the end
        out.node_events += [NodeEvent(line, at=at, node=one.node, source="kernel") for line, at in lines]
        return []
    return _FINDINGS[one.stream](text)


def _stacks(files: Sequence[LogStream], unreadable: list[str]) -> list[DiagnosticFinding]:
    """The findings of all dumps together; one that is no dump is left out."""
    dumps: list[tuple[int | None, str]] = []
    for file in files:
        text = file.text[:_MOST_CHARS]
        try:
            read_stacks([(file.rank, text)])
        except NotDiagnostic as error:
            unreadable.append(f"{_title(file)}: {error}")
        else:
            dumps.append((file.rank, text))
    return read_stacks(dumps) if dumps else []


def _title(one: LogStream) -> str:
    name = f"{TITLES[one.stream]} {_FORMS.get(one.stream, '')}".rstrip()
    if one.rank is not None:
        return f"{name} of rank {one.rank}"
    return f"{name} of node {one.node[:200]}" if one.node else name


def kind_of(start: bytes) -> str | None:
    """Return the kind of a diagnostic file by its first bytes, None of any other file."""
    if start.startswith((_PICKLE, b"{")) and any(word in start for word in _IN_RECORDS):
        return FLIGHT_RECORDER
    text = start.decode("utf-8", "replace").lstrip("\ufeff \t\r\n").replace("\r\n", "\n")
    if {"JobID", "State"} <= set(text.partition("\n")[0].split("|")):
        return "sacct"
    return next((kind for kind, pattern in _BEGINS.items() if pattern.match(text)), None)
