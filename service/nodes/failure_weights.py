"""How much a failure counts against each of its nodes. Pure; the weights are in suspicion.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from classifiers.node_names import short_name
from service.nodes.records import JudgedFailure


@dataclass(frozen=True, slots=True)
class Weights:
    """The contents of suspicion.toml."""

    side: Mapping[str, float]
    undecided: float
    not_the_node: frozenset[str]


@cache
def weights() -> Weights:
    """The packaged weights, cached."""
    raw = tomllib.loads(files("service.nodes").joinpath("suspicion.toml").read_text(encoding="utf-8"))
    side = {name: float(value) for name, value in raw["side"].items() if name != "source"}
    return Weights(side, float(raw["undecided"]["share"]), frozenset(raw["not_the_node"]["causes"]))


def node_weights(failure: JudgedFailure) -> dict[str, float]:
    """The weight by node: all on the suspect if it is one of the job's nodes, otherwise equal shares."""
    given = weights()
    if failure.cause in given.not_the_node or not failure.nodes:
        return {}
    weight = given.side.get(failure.side, 0.0) * failure.confidence * (given.undecided if failure.abstained else 1.0)
    if weight <= 0:
        return {}
    if failure.suspect_node is not None:
        suspect = short_name(failure.suspect_node)
        named = [node for node in failure.nodes if short_name(node) == suspect]
        if named:
            return {named[0]: weight}
    nodes = tuple(dict.fromkeys(failure.nodes))
    return dict.fromkeys(nodes, weight / len(nodes))
