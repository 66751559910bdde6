"""Reads failure_kinds.toml: the kinds of failure of long runs."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from classifiers import taxonomy

FRAMEWORKS = ("pytorch", "pytorch", "gloo", "deepspeed", "mpi", "horovod", "jax", "tensorflow", "ray")
WAYS = frozenset({"crash", "kill", "hang", "slow", "lost"})


@dataclass(frozen=True, slots=True)
class LongRunKind:
    """One kind of failure; see failure_kinds.toml for the fields."""

    name: str
    axes: Mapping[str, str]
    allowed: Mapping[str, tuple[str, ...]]
    how: str
    texts: tuple[str, ...]
    node: str | None
    before: str | None
    trace: bool
    code: int
    frameworks: tuple[str, ...]
    status: str


def _axes(raw: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    known = taxonomy.load()
    best = dict(zip(("cause", "category", "symptom", "retry"), raw["truth"].split(), strict=True))
    best["side"] = known.side_of(best["cause"])
    more: dict[str, list[str]] = {axis: list(codes) for axis, codes in raw.get("ok", {}).items()}
    more.setdefault("side", []).extend(known.side_of(cause) for cause in more.get("cause", ()))
    return best, {axis: tuple(dict.fromkeys([label, *more.get(axis, ())])) for axis, label in best.items()}


def read() -> list[LongRunKind]:
    """Return all kinds, in order.

    Raises:
        ValueError: an entry does not follow the format.
    """
    data = tomllib.loads((Path(__file__).parent / "failure_kinds.toml").read_text(encoding="utf-8"))
    out = []
    for raw in data["kind"]:
        if raw["how"] not in WAYS:
            raise ValueError(f"{raw['name']}: how: expected one of {', '.join(sorted(WAYS))}, got {raw['how']!r}")
        best, allowed = _axes(raw)
        out.append(
            LongRunKind(
                name=raw["name"],
                axes=best,
                allowed=allowed,
                how=raw["how"],
                texts=tuple(raw.get("texts", ())),
                node=raw.get("node"),
                before=raw.get("before"),
                trace=raw.get("trace", False),
                code=raw.get("exit", 1),
                frameworks=tuple(raw.get("frameworks", FRAMEWORKS)),
                status=raw.get("event", "failed"),
            )
        )
    return out
