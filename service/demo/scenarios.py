"""The failures of the demo, from scenarios.toml, and their logs for a given job."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

_TIME = re.compile(r"<(kernel )?-(\d+)>")
_OTHER_RANKS = 3  # ranks besides the first one whose logs an event carries
_STEPS = 6  # lines of training progress before the failure
_STEP_S = 12


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of failure; the fields are described in scenarios.toml."""

    name: str
    origin: str
    weight: float
    rerun: float
    status: str = "failed"
    exit_code: int = 1
    startup: bool = False
    hang_s: int = 0
    kernel: str = ""
    first: str = ""
    others: str = ""
    launcher: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """What a log names of its job: the nodes with the failing one first, the first rank on it, and the step."""

    job_id: str
    user: str
    name: str
    nodes: tuple[str, ...]
    gpus: int
    rank: int
    step: int


@cache
def load() -> Mapping[str, Scenario]:
    """All scenarios by name."""
    data = tomllib.loads(files("service.demo").joinpath("scenarios.toml").read_text(encoding="utf-8"))
    return {one["name"]: Scenario(**one) for one in data["scenario"]}


def of_origin(origin: str) -> list[Scenario]:
    """The scenarios of an origin that occur by chance."""
    return [one for one in load().values() if one.origin == origin and one.weight > 0]


def logs(scenario: Scenario, place: Place, ended: datetime) -> list[dict[str, Any]]:
    """The log streams of a failed job, as an event carries them."""
    found = []
    if scenario.first:
        found.append((place.rank, _progress(scenario, place) + scenario.first))
    if scenario.others:
        ranks = [rank for rank in range(place.gpus) if rank != place.rank][:_OTHER_RANKS]
        found += [(rank, scenario.others) for rank in ranks]
    made: list[dict[str, Any]] = [
        {"rank": rank, "node": _node_of(rank, place), "stream": "stderr", "tail": fill(text, place, ended, rank)}
        for rank, text in found
    ]
    if scenario.launcher:
        text = fill(scenario.launcher, place, ended, place.rank)
        made.append({"rank": None, "stream": "stderr", "tail": text})
    return made


def node_events(scenario: Scenario, place: Place, ended: datetime) -> list[dict[str, Any]]:
    """The kernel line of the failing node, as an event carries it."""
    if not scenario.kernel:
        return []
    at = ended - timedelta(seconds=7)
    text = fill(scenario.kernel, place, ended, place.rank)
    return [{"at": at.isoformat(), "node": place.nodes[0], "source": "kernel", "text": text}]


def fill(text: str, place: Place, ended: datetime, rank: int) -> str:
    """A text with the job's values and times."""
    values = {
        "node": place.nodes[0],
        "peer": place.nodes[-1],
        "user": place.user,
        "job": place.job_id,
        "name": place.name,
        "rank": str(rank),
        "ranks": str(place.gpus),
        "step": str(place.step),
    }
    for key, value in values.items():
        text = text.replace(f"<{key}>", value)
    return _TIME.sub(lambda found: f"{ended - timedelta(seconds=int(found[2])):%Y-%m-%dT%H:%M:%S}", text).lstrip("\n")


def _progress(scenario: Scenario, place: Place) -> str:
    """Lines of training steps before the failure; none if it fails at its start."""
    if scenario.startup:
        return ""
    last = (scenario.hang_s or 10) + 2
    return "\n" + "".join(
        f"<-{last + _STEP_S * back}> rank <rank> step {max(place.step - back, 1)} loss {2.3 + back / 97:.3f}\n"
        for back in range(_STEPS, 0, -1)
    )


def _node_of(rank: int, place: Place) -> str:
    """The node of a rank: ranks are spread evenly, and the first failing rank runs on the failing node."""
    per_node = max(place.gpus // len(place.nodes), 1)
    if rank // per_node == place.rank // per_node:
        return place.nodes[0]
    rest = place.nodes[1:]
    return rest[rank // per_node % len(rest)] if rest else place.nodes[0]
