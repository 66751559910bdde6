"""evidence_weights.toml, read and checked: what kinds of signs there are and how much each weighs."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from classifiers import taxonomy
from classifiers.taxonomy import SIDES, Side

Severity = Literal["info", "warning", "critical", "fatal"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of node event. `side` None: it says nothing of a failure. Rates are per 1,000 node-days, times seconds."""

    code: str
    title: str
    severity: Severity
    says: str
    source: str
    side: Side | None = None
    cause: str = ""
    retry: str = ""
    rate: float = 0.0
    seen: float = 0.0
    cap: float = 0.0
    before_s: float = 0.0
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A way in which others' failures speak. `each`: nats for each of them; else by `rate` and `seen` as for kinds."""

    code: str
    title: str
    side: Side
    says: str
    says_one: str
    source: str
    cap: float
    before_s: float
    after_s: float
    cause: str = ""
    retry: str = ""
    each: float = 0.0
    rate: float = 0.0
    seen: float = 0.0


@dataclass(frozen=True, slots=True)
class Data:
    """All of evidence_weights.toml. `least`: what weighs less (nats) is not worth a line."""

    kinds: Mapping[str, Kind]
    neighbours: Mapping[str, Neighbour]
    base: Mapping[str, float]
    log_most: float
    log_sure: float
    log_unsure: float
    log_strong: float
    nodes_strong: float
    healthy_strong: float
    decides_at: float
    undecided_below: float
    further: float
    least: float = 0.05

    @property
    def before_s(self) -> float:
        """How long before a failure's end anything of a node counts."""
        return max(kind.before_s for kind in self.kinds.values())

    @property
    def after_s(self) -> float:
        """How long after a failure's end anything of a node counts."""
        return max(kind.after_s for kind in self.kinds.values())


@cache
def load() -> Data:
    """The packaged data; read once.

    Raises:
        ValueError: it contradicts itself or the taxonomy; names the entry.
    """
    raw = tomllib.loads(files("classifiers.relevance").joinpath("evidence_weights.toml").read_text(encoding="utf-8"))
    kinds = {row["code"]: Kind(**row) for row in raw["kind"]}
    neighbours = {row["code"]: Neighbour(**row) for row in raw["neighbour"]}
    entries: list[Kind | Neighbour] = [*kinds.values(), *neighbours.values()]
    for entry in entries:
        _check(entry)
    numbers: dict[str, Any] = {
        name: raw[name]
        for name in (
            *(
                "log_most",
                "log_sure",
                "log_unsure",
                "log_strong",
                "nodes_strong",
                "healthy_strong",
                "decides_at",
                "undecided_below",
                "further",
            ),
        )
    }
    if set(raw["base"]) != set(SIDES):
        raise ValueError("evidence_weights.toml: base: expected a share for each side")
    return Data(kinds, neighbours, raw["base"], **numbers)


def _check(entry: Kind | Neighbour) -> None:
    axes = taxonomy.load()
    where = f"evidence_weights.toml: {entry.code}"
    if entry.cause and entry.cause not in axes.causes:
        raise ValueError(f"{where}: cause: expected a code of the taxonomy, got {entry.cause!r}")
    if entry.side is not None and entry.side not in SIDES:
        raise ValueError(f"{where}: side: expected one of {', '.join(SIDES)}, got {entry.side!r}")
    if entry.retry and entry.retry not in get_args(taxonomy.RetryOutlook):
        raise ValueError(f"{where}: retry: expected a retry outlook, got {entry.retry!r}")
    if entry.side is not None and not (entry.cap > 0 and 0 <= entry.seen < 1 and entry.rate >= 0):
        raise ValueError(f"{where}: expected cap > 0, 0 <= seen < 1, rate >= 0")
    if isinstance(entry, Kind) and entry.severity not in get_args(Severity):
        raise ValueError(f"{where}: severity: expected one of {', '.join(get_args(Severity))}")
    if not entry.source:
        raise ValueError(f"{where}: source: expected where it comes from")
