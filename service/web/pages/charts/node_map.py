"""The map of nodes: a cell for each node in levels of its relative rate of failures, by rack if it is known."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from service.nodes.records import NodeRow
from service.web import node_views

MOST = 500  # cells
SEVERE = 3.0  # times the rate of the cluster, from which a suspect node has the darkest level
RAISED = 1.5
LONGEST_LABEL = 12  # characters
KEY = (
    (0, "below average"),
    (1, "average or not enough data"),
    (2, "above average, within chance"),
    (3, "suspect"),
    (4, "suspect, 3 times the average or more"),
)
_NUMBER = re.compile(r"(\d+)")
_SERIES = re.compile(r"^(.*?)(\d+)$")


@dataclass(frozen=True, slots=True)
class Cell:
    """One node, its level, 0 to 4, and the end of its name."""

    row: NodeRow
    level: int
    label: str


@dataclass(frozen=True, slots=True)
class Block:
    """Nodes of one rack, block, switch, zone or series of names. `title` is empty if there is one block only."""

    title: str
    cells: tuple[Cell, ...]

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return len(self.cells)


def level(row: NodeRow) -> int:
    """The level of a node: 0 clearly below the average, 1 average or unknown, 2 raised, 3 and 4 suspect."""
    status = node_views.node_status(row)
    if status == "suspect":
        return 4 if row.rate_ratio >= SEVERE else 3
    if status == "clear":
        return 0
    return 2 if row.rate_ratio >= RAISED else 1


def node_map(rows: Sequence[NodeRow]) -> list[tuple[str, list[Block]]]:
    """The blocks of each cluster, in the order of their names; numbers in names are ordered by value."""
    ordered = sorted(rows, key=lambda row: (row.cluster, _natural(row.node)))
    return [(cluster, list(_blocks(list(found)))) for cluster, found in groupby(ordered, key=lambda row: row.cluster)]


def _blocks(rows: Sequence[NodeRow]) -> Iterator[Block]:
    """By rack if racks are known, else by block, else by switch, else by zone, else by the series of the names."""
    for kind in ("rack", "block", "switch", "zone"):
        places = sorted({getattr(row, kind) for row in rows} - {None}, key=_natural)
        if places:
            for place in places:
                yield _block(f"{kind} {place}", [row for row in rows if getattr(row, kind) == place])
            left = [row for row in rows if getattr(row, kind) is None]
            if left:
                yield _block(f"{kind} not known", left)
            return
    series = [list(found) for _, found in groupby(rows, key=lambda row: _series(row.node))]
    if len(series) == 1 or len(series) > len(rows) / 2:  # names that form no series
        yield _block("", rows)
        return
    for found in series:
        first, last = found[0].node, found[-1].node
        yield _block(first if len(found) == 1 else f"{first} to {last}", found)


def _block(title: str, rows: Sequence[NodeRow]) -> Block:
    return Block(title, tuple(Cell(row, level(row), _label(row.node)) for row in rows))


def _label(name: str) -> str:
    """The end of a long name, where names of one series differ."""
    return name if len(name) <= LONGEST_LABEL else "…" + name[1 - LONGEST_LABEL :]


def _series(name: str) -> str:
    found = _SERIES.match(name)
    return found[1] if found is not None else name


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Texts and numbers of a name, so that n9 comes before n10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBER.split(name))
