"""Slurm's trackable resources (`cpu=64,mem=500G,node=2,gres/gpu=8,gres/gpu:h100=8`)."""

import re
from dataclasses import dataclass
from decimal import Decimal

_UNITS = {"": 2**20, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}  # a bare number is MiB
_AMOUNT = re.compile(r"(\d{1,16}(?:\.\d{1,9})?)([KMGTP]?)", re.IGNORECASE)
_MOST = 2**53


@dataclass(frozen=True, slots=True)
class TrackableResources:
    """The resources of a job; None if absent or not readable."""

    cpus: int | None = None
    memory_bytes: int | None = None
    gpus: int | None = None
    gpu_type: str | None = None


def read_tres(text: str | None) -> TrackableResources:
    """Parse the allocated or requested resources of a job."""
    parts = dict(part.split("=", 1) for part in (text or "").split(",") if "=" in part)
    typed = [(name.removeprefix("gres/gpu:"), count) for name, count in parts.items() if name.startswith("gres/gpu:")]
    counts = [_whole(count) for _, count in typed]
    gpus = _whole(parts.get("gres/gpu"))
    if gpus is None and typed:
        gpus = sum(count or 0 for count in counts)
    return TrackableResources(
        cpus=_whole(parts.get("cpu")),
        memory_bytes=_bytes(parts.get("mem")),
        gpus=gpus,
        gpu_type=typed[0][0] if len(typed) == 1 else None,
    )


def _whole(text: str | None) -> int | None:
    if text is None or not text.isdecimal() or len(text) > len(str(_MOST)):
        return None
    return min(int(text), _MOST)


def _bytes(text: str | None) -> int | None:
    hit = _AMOUNT.fullmatch(text or "")
    return None if hit is None else min(int(Decimal(hit[1]) * _UNITS[hit[2].upper()]), _MOST)
