"""Output of `ncclras`: processes and ranks that NCCL's RAS threads do not reach, and ranks that lag behind.

Source: NVIDIA NCCL user guide, "RAS" (text form since NCCL 2.24, JSON since 2.28.7). Ranks are those of a communicator;
they are the job's ranks only in a communicator of all ranks.
"""

import json
import re
from typing import Any, Final

from classifiers.contracts import DiagnosticFinding, NotDiagnostic

_KIND: Final = "nccl_ras"
# Limits of what is read and shown of one file (judgement: far more than a real one has).
_MOST_LINES: Final = 20_000
_MOST_SHOWN: Final = 12
_PROCESS: Final = re.compile(
    r"^\s*Process (?P<pid>\d{1,10}) on node (?P<node>[\w.:-]{1,200}) managing GPUs? (?P<gpu>\d{1,3})"
)
_COMMUNICATOR: Final = re.compile(r"^\s*#(?P<group>\d{1,6})-\d{1,6} \(\w{1,40}\) (?P<problem>[A-Z]+)")
_MISSING: Final = re.compile(r"^\s*The missing ranks?: (?P<ranks>[\d, ]{1,400})")
_COUNT: Final = re.compile(
    r"^\s*(?P<ranks>\d{1,7}) ranks? ha(?:ve|s) launched up to (?:\w+ )?operation (?P<number>\d{1,18})"
)
_RANK: Final = re.compile(
    r"^\s*Rank (?P<rank>\d{1,7}) -- GPU (?P<gpu>\d{1,3}) managed by process \d+ on node (?P<node>[\w.:-]{1,200})"
)
_ROW: Final = re.compile(r"^\s*(?P<group>\d{1,6})\s+\d+\s+[\d-]+\s+[\d-]+\s+(?P<size>\d{1,7})\s+\d+\s+[A-Z]+\s+[A-Z]+")
_TOTAL: Final = re.compile(r"^\s*\d+\s+[\d-]+\s+[\d-]+\s+\d+\s+(?P<gpus>\d{1,7})\s*$")
_KNOWN: Final = ("Job summary", "Communicators...", "NCCL version", "RAS Monitor Mode", "INCOMPLETE", "PEER_DEAD")


def read_ras(text: str) -> list[DiagnosticFinding]:
    """Return dead and unresponsive processes, missing ranks, and ranks behind the others.

    Raises:
        NotDiagnostic: the text is not an output of ncclras.
    """
    if text.lstrip().startswith("{"):
        return _of_json(text)
    if not any(word in text for word in _KNOWN):
        raise NotDiagnostic("not an output of ncclras")
    return _TextReader().read(text)[:_MOST_SHOWN]


class _TextReader:
    """Reads the text form line by line."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._total: int | None = None
        self._group: str | None = None
        self._section = ""
        self._count: int | None = None
        self._counts: dict[int, list[tuple[int, int, str]]] = {}
        self._found: list[DiagnosticFinding] = []

    def read(self, text: str) -> list[DiagnosticFinding]:
        for line in text.split("\n")[:_MOST_LINES]:
            self._read(line)
        self._lagging()
        return self._found

    def _read(self, line: str) -> None:
        word = line.strip()
        if (row := _ROW.match(line)) is not None:
            self._sizes[row["group"]] = int(row["size"])
        elif (total := _TOTAL.match(line)) is not None:
            self._total = int(total["gpus"])
        elif (communicator := _COMMUNICATOR.match(line)) is not None:
            self._lagging()
            self._group, self._section = communicator["group"], communicator["problem"]
        elif word in {"DEAD", "INCOMPLETE", "TIMEOUT", "Errors", "Warnings"}:
            self._lagging()
            self._group, self._section = None, word
        else:
            self._read_member(line)

    def _read_member(self, line: str) -> None:
        if (process := _PROCESS.match(line.partition("PEER_DEAD:")[2] or line)) is not None:
            dead = self._section == "DEAD" or "PEER_DEAD" in line
            state = "is considered dead" if dead else "does not respond"
            text = f"NCCL RAS: process {process['pid']} on node {process['node']} (GPU {process['gpu']}) {state}"
            self._found.append(
                DiagnosticFinding(_KIND, text, "initiating", node=process["node"], gpu=int(process["gpu"]))
            )
        elif (missing := _MISSING.match(line)) is not None:
            ranks = [int(rank) for rank in missing["ranks"].replace(",", " ").split() if len(rank) < 8]  # noqa: PLR2004
            self._missing(ranks)
        elif (count := _COUNT.match(line)) is not None:
            self._count = int(count["number"])
            self._counts.setdefault(self._count, [])
        elif (rank := _RANK.match(line)) is not None and self._count is not None:
            self._counts[self._count].append((int(rank["rank"]), int(rank["gpu"]), rank["node"]))

    def _missing(self, ranks: list[int]) -> None:
        if not ranks:
            return
        shown = ", ".join(map(str, ranks[:8]))
        text = f"NCCL RAS: rank {shown} of communicator group {self._group or '?'} gave no data"
        rank = ranks[0] if len(ranks) == 1 and self._is_global() else None
        self._found.append(DiagnosticFinding(_KIND, text, "initiating", rank=rank))

    def _is_global(self) -> bool:
        """Whether the communicator has all ranks of the job."""
        size = self._sizes.get(self._group or "")
        return size is not None and size == (self._total or max(self._sizes.values()))

    def _lagging(self) -> None:
        """Add the ranks that launched fewer operations than the others; a snapshot alone is no failure."""
        if len(self._counts) > 1:
            least = min(self._counts)
            behind = self._counts[least]
            if behind:
                shown = ", ".join(str(rank) for rank, _, _ in behind[:8])
                text = f"NCCL RAS: rank {shown} launched up to operation {least}, others up to {max(self._counts)}"
                only = behind[0] if len(behind) == 1 and self._is_global() else None
                self._found.append(
                    DiagnosticFinding(
                        _KIND, text, "cascade", rank=only[0] if only else None, node=only[2] if only else None
                    )
                )
        self._counts, self._count = {}, None


def _of_json(text: str) -> list[DiagnosticFinding]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise NotDiagnostic("not an output of ncclras: damaged JSON") from None
    communicators = value.get("communicators") if isinstance(value, dict) else None
    if not isinstance(communicators, list):
        raise NotDiagnostic("not an output of ncclras: it has no communicators")
    sizes = [entry.get("size") for entry in communicators if isinstance(entry, dict)]
    largest = max((size for size in sizes if isinstance(size, int)), default=0)
    found: list[DiagnosticFinding] = []
    for communicator in communicators[:1_000]:
        members = communicator.get("missing_ranks") if isinstance(communicator, dict) else None
        for member in members[:_MOST_SHOWN] if isinstance(members, list) else ():
            if isinstance(member, dict) and len(found) < _MOST_SHOWN:
                found += [_of_member(member, is_global=communicator.get("size") == largest)]
    return found


def _of_member(member: dict[str, Any], *, is_global: bool) -> DiagnosticFinding:
    status = member.get("status")
    dead = isinstance(status, dict) and status.get("considered_dead") is True
    rank, gpu, host = _number(member.get("rank")), _number(member.get("nvml_dev")), member.get("host")
    node = host[:200] if isinstance(host, str) and host else None
    place = f" on node {node} (GPU {gpu})" if node and gpu is not None else ""
    text = (
        f"NCCL RAS: rank {'?' if rank is None else rank}{place} {'is considered dead' if dead else 'does not respond'}"
    )
    return DiagnosticFinding(_KIND, text, "initiating", rank=rank if is_global else None, node=node, gpu=gpu)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else None
