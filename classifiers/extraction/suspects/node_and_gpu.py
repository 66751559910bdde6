"""The node and the GPU where a failure began."""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.contracts import RawCase
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.line_shapes import contains_any
from classifiers.extraction.lost_nodes import lost_node
from classifiers.extraction.observations.only_losses import is_reported_by_other_node
from classifiers.extraction.process_exits import ProcessExit
from classifiers.extraction.ranks import nodes_of_event, nodes_of_rank
from classifiers.node_names import short_name

_GPU: Final = re.compile(r"\bGPU[ :]?#?(\d{1,2})\b|\bcuda:(\d{1,2})\b|\bdevice(?: ordinal)?[ =:](\d{1,2})\b")
_GPU_PARTS: Final = ("GPU", "cuda:", "device")  # one is part of every match
_RANGE: Final = 600  # characters of a line that are searched (judgement)


def suspect_node(
    raw: RawCase, items: Sequence[EvidenceItem], exits: Sequence[ProcessExit], rank: int | None
) -> str | None:
    """The node where the failure began, None if nothing tells; `rank` is the suspect rank."""
    nodes = raw.job.nodes
    there = nodes_of_rank(raw, items, rank, exits)
    begins = [item for item in items if item.role == "initiating"]
    of_daemon = len(nodes) > 1 and bool(begins) and is_reported_by_other_node(begins[0])
    for item in begins:
        named = lost_node(item.text, nodes) if item.line_number is None or of_daemon else None
        if named is not None:
            return named
        if of_daemon or (rank is not None and item.rank not in {None, rank}):
            continue
        if there and not item.is_node_event and short_name(item.node or "") not in there:
            continue  # said by another node
        node = next(iter(nodes_of_event(raw, item)), None) if item.is_node_event else item.node
        if node:
            return node
    if rank is not None:
        of_rank = [stream.node for stream in raw.streams if stream.rank == rank]
        of_rank += [process_exit.node for process_exit in exits if process_exit.rank == rank]
        if any(of_rank):
            return next(node for node in of_rank if node)
    of_exits = {process_exit.node for process_exit in exits if process_exit.node} if rank is None else set()
    if len(of_exits) == 1:
        return of_exits.pop()
    return nodes[0] if len(nodes) == 1 else None


def suspect_gpu(items: Sequence[EvidenceItem], rank: int | None) -> int | None:
    """The GPU that the first lines name, None if none does."""
    for item in items:
        if item.role != "initiating" or (rank is not None and item.rank not in {None, rank}):
            continue
        if item.gpu is not None:
            return item.gpu
        found = _GPU.search(item.text, 0, _RANGE) if contains_any(item.text, _GPU_PARTS) else None
        if found is not None:
            return int(next(group for group in found.groups() if group is not None))
    return None
