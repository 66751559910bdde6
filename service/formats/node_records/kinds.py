"""Classifies node events by the rules of node_lines.toml."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from classifiers.fleet_evidence import evidence_weights

_SHORT = 4  # characters
LOOKED_AT = 4_000  # characters of a line that are examined
# In kernel lines the bus id has a short domain and no function; nvidia-smi and DCGM print the long form. The part of a
# GPU that is divided (MIG) follows it: `Xid (PCI:0000:0f:00 GPU-I:01): 94`.
_XID = re.compile(r"(?i)\bxid\b(?: \((?:PCI:)?[0-9A-Fa-f:.]{1,20}(?: GPU-I:\d{1,3})?\))?(?: error)?:? {0,2}(\d{1,3})\b")
# Xid 154 says that the action that a GPU needs has changed.
_RECOVERY_ACTION, _NONE_NEEDED = 154, "to 0x0 (none)"
# The status of a machine check; bit 61 says that the error was not corrected.
_BANK_STATUS = re.compile(r"machine check(?: exception)?: [0-9a-f]{1,16} bank \d{1,3}: ([0-9a-f])[0-9a-f]{15}\b")
_UNCORRECTED = 0b0010
_GPU = re.compile(r"(?i)\bgpu[ :#]{0,2}(\d{1,2})\b(?!:)")
_NAME = re.compile(r"(?<![\w-])[\w-]*gpu\d{1,2}[\w-]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of node_lines.toml, prepared for lookup. `health`: system, kind of a failure, kind of a warning."""

    lines: tuple[tuple[str, tuple[str, ...]], ...]
    xids: Mapping[int, str]
    conditions: Mapping[str, tuple[str, frozenset[str]]]
    health: tuple[tuple[str, str, str], ...]
    policy: Mapping[str, str]


@cache
def rules() -> Rules:
    """Return the packaged rules; they are read once.

    Raises:
        ValueError: a kind is missing in evidence_weights.toml, or an entry has no source.
    """
    raw = tomllib.loads(files("service.formats").joinpath("node_lines.toml").read_text(encoding="utf-8"))
    known = evidence_weights.load().kinds
    rows = [*raw["line"], *raw["condition"], *raw["health"], *raw["policy"]]
    xids = {number: kind for kind, numbers in raw["xid"].items() if kind != "source" for number in numbers}
    wrong = {row["kind"] for row in rows} | {row.get("warning", row["kind"]) for row in rows} | set(xids.values())
    if wrong - set(known) or not all(row["source"] for row in rows):
        raise ValueError(f"node_lines.toml: kinds that are not known, or no source: {sorted(wrong - set(known))}")
    return Rules(
        tuple((row["kind"], tuple(row["words"])) for row in raw["line"]),
        xids,
        {row["type"]: (row["kind"], frozenset(row["bad"])) for row in raw["condition"]},
        tuple((row["system"], row["kind"], row.get("warning", row["kind"])) for row in raw["health"]),
        {row["condition"]: row["kind"] for row in raw["policy"]},
    )


def of_xid(number: int) -> str:
    """Return the kind of an Xid; an unlisted Xid means a degraded GPU."""
    return rules().xids.get(number, "gpu_degraded")


def of_text(text: str) -> str:
    """Return the kind of a line, "other" if no rule matches."""
    low = text[:LOOKED_AT].lower()
    hit = _XID.search(text[:LOOKED_AT])
    if hit is not None:
        number = int(hit[1])
        return "other" if number == _RECOVERY_ACTION and _NONE_NEEDED in low else of_xid(number)
    hit = _BANK_STATUS.search(low)
    if hit is not None:
        return "memory" if int(hit[1], 16) & _UNCORRECTED else "other"
    return next((kind for kind, words in rules().lines if any(_has(low, word) for word in words)), "other")


def _has(low: str, word: str) -> bool:
    """Return whether a line has a word of a rule; short ones such as `psu` are also parts of other words."""
    if len(word) > _SHORT or word not in low:
        return word in low
    return re.search(rf"(?<![a-z]){re.escape(word)}(?![a-z])", low) is not None


def gpu_in(text: str, nodes: Iterable[str] = ()) -> int | None:
    """Return the device index in a line; None if there is none.

    Args:
        text: the line.
        nodes: the nodes that the line is about. `gpu17` is no index where it is the name of one of them.
    """
    names = {node.partition(".")[0] for node in nodes}
    others = _NAME.sub(lambda found: "" if found[0] in names else found[0], text[:LOOKED_AT])
    hit = _GPU.search(others)
    return None if hit is None else int(hit[1])
