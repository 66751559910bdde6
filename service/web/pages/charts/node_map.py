"""The map of nodes: a cell for each node of a cluster, in levels of its relative rate of failures."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from service.nodes.records import NodeRow
from service.web import fleet_views

MOST = 500  # cells
SEVERE = 3.0  # times the rate of the cluster, from which a suspect node has the darkest level
RAISED = 1.5
KEY = (
    (0, "below average"),
    (1, "average or not enough data"),
    (2, "above average, within chance"),
    (3, "suspect"),
    (4, "suspect, 3 times the average or more"),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One node and its level, 0 to 4."""

    row: NodeRow
    level: int


def level(row: NodeRow) -> int:
    """The level of a node: 0 clearly below the average, 1 average or unknown, 2 raised, 3 and 4 suspect."""
    status = fleet_views.node_status(row)
    if status == "suspect":
        return 4 if row.rate_ratio >= SEVERE else 3
    if status == "clear":
        return 0
    return 2 if row.rate_ratio >= RAISED else 1


def node_map(rows: Sequence[NodeRow]) -> list[tuple[str, list[Cell]]]:
    """The cells of each cluster, in the order of their names."""
    ordered = sorted(rows, key=lambda row: (row.cluster, row.node))
    return [
        (cluster, [Cell(row, level(row)) for row in found])
        for cluster, found in groupby(ordered, key=lambda row: row.cluster)
    ]
