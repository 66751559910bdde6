"""Which places a verdict suspects: pages, explanations and messages name a node or GPU only by this rule."""

from dataclasses import replace

from classifiers.contracts import Suspect


def suspects_nodes(side: str, *, abstained: bool) -> bool:
    """Whether a verdict suspects a node or GPU at all: not if it is undecided or on the user's side."""
    return not abstained and side != "user"


def suspected_node(node: str | None, side: str, *, abstained: bool) -> str | None:
    """The node, if the verdict suspects nodes."""
    return node if suspects_nodes(side, abstained=abstained) else None


def suspected_place(suspect: Suspect | None, side: str, *, abstained: bool) -> Suspect:
    """Where the failure most likely began: only the rank, unless the verdict suspects nodes."""
    found = suspect or Suspect()
    return found if suspects_nodes(side, abstained=abstained) else replace(found, node=None, gpu=None)
