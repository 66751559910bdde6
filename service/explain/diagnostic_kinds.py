"""Recognises diagnostic files among logs by how they begin. Their kinds are those of `logs[].kind` of an event."""

import re
from typing import Final

from classifiers.contracts import FLIGHT_RECORDER

TITLES: Final = {
    FLIGHT_RECORDER: "Flight Recorder", "torchrun_error": "torchrun error file", "nvidia_smi": "nvidia-smi",
    "sacct": "sacct", "nccl_ras": "NCCL RAS", "py_spy": "py-spy",
}  # fmt: skip
_PICKLE: Final = b"\x80"
_RECORDED: Final = (b"collective_seq_id", b"pg_config", b"pg_status")
_TEXTS: Final = {
    "torchrun_error": re.compile(r'\{\s{0,8}"message"\s{0,8}:\s{0,8}\{\s{0,8}"(?:message|extraInfo)"'),
    "nvidia_smi": re.compile(r"={5,40}NVSMI LOG={5,40}"),
    "nccl_ras": re.compile(r'(?s)(?:\{.{0,8000}?"communicators"\s{0,8}:|(?:.{0,2000}\n)?Job summary\n=+\n)'),
    "py_spy": re.compile(r"Process \d{1,9}: [^\n]{0,4000}\nPython v\d"),
}


def kind_of(start: bytes) -> str | None:
    """Return the kind of a diagnostic file by its first bytes, None of any other file."""
    if start.startswith((_PICKLE, b"{")) and any(word in start for word in _RECORDED):
        return FLIGHT_RECORDER
    text = start.decode("utf-8", "replace").lstrip("\ufeff \t\r\n").replace("\r\n", "\n")
    if {"JobID", "State"} <= set(text.partition("\n")[0].split("|")):
        return "sacct"
    return next((kind for kind, pattern in _TEXTS.items() if pattern.match(text)), None)
