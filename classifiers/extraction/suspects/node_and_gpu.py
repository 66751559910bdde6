"""The node and the GPU where a failure began."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from classifiers.contracts import RawCase, Suspect
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.line_shapes import contains_any
from classifiers.extraction.observations.only_losses import is_reported_by_other_node
from classifiers.extraction.process_exits import ProcessExit
from classifiers.extraction.ranks import nodes_of_event, nodes_of_rank, ranks_on_node
from classifiers.node_names import short_name

_GPU: Final = re.compile(r"\bGPU[ :]?#?(\d{1,2})\b|\bcuda:(\d{1,2})\b|\bdevice(?: ordinal)?[ =:](\d{1,2})\b")
_GPU_PARTS: Final = ("GPU", "cuda:", "device")  # one is part of every match
_RANGE: Final = 600  # characters of a line that are searched (judgement)
# A report that the node is lost; it is not the node whose log has the report.
_NAME: Final = r"[\"']?([A-Za-z0-9][\w.-]{1,100}[\w])(?![\[,\w])"
_GONE: Final = r"(?:down|lost|dead|gone|unreachable|marked (?:down|dead))"
_LOST: Final = (
    # Slurm, srun and slurmctld
    re.compile(rf"(?i)\b(?:node failure on|on failed node|failure of node|from batch node) {_NAME}"),
    re.compile(rf"(?i)\bnodes? {_NAME} (?:is |are )?(?:not responding|set down|{_GONE})\b"),
    re.compile(rf"(?i)\b(?:launch|step|task)\b[^\n]{{0,60}} failed on node {_NAME}"),
    # PBS, LSF, and what schedulers of other makes say
    re.compile(rf"(?i)\bv?(?:node|host) {_NAME} (?:has |is |went |was |became )?(?:been )?{_GONE}\b"),
    # Open MPI and PRRTE
    re.compile(rf"(?i)\bdaemon\b[^\n]{{0,40}} (?:died|failed|quit)[^\n]{{0,20}} on node {_NAME}"),
    re.compile(rf"\bwith PID \d{{1,8}} on node {_NAME} exited on signal"),
    # Ray
    re.compile(rf"\bnode name: {_NAME} has been marked dead"),
)
_LOST_WORDS: Final = ("node", "Node", "host", "Host", "daemon")


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


def suspect_of_event(
    raw: RawCase,
    items: Sequence[EvidenceItem],
    exits: Sequence[ProcessExit],
    event: EvidenceItem,
    suspect: Suspect | None,
) -> Suspect | None:
    """The suspect where a node event is the beginning although the suspect was found from other lines.

    Args:
        raw: the case.
        items: its evidence items.
        exits: the process exits that launchers report.
        event: the node event.
        suspect: the suspect so far.

    Returns:
        A rank on the node of the event, with that node. The same suspect where it is on that node already, or where the
        event names none. Without a node if the node is none of the job's: what ran there is not known.
    """
    named = nodes_of_event(raw, event)
    before = suspect or Suspect()
    if not named or (before.node is not None and short_name(before.node) in map(short_name, named)):
        return suspect
    node = named[0]
    ranks = ranks_on_node(raw, items, node, exits)
    if raw.job.nodes and short_name(node) not in map(short_name, raw.job.nodes) and not ranks:
        return None if before.rank is None else Suspect(rank=before.rank)
    rank = before.rank if before.rank in ranks else min(ranks, default=None)
    return Suspect(rank=rank, node=node, gpu=suspect_gpu([event], rank))


def lost_node(line: str, nodes: Iterable[str]) -> str | None:
    """The node of the job that a line reports as lost; None where it names none, or several.

    Args:
        line: the line.
        nodes: the nodes of the job.
    """
    if not any(word in line for word in _LOST_WORDS):
        return None
    found = {short_name(name) for one in _LOST for hit in one.finditer(line, 0, 2_000) for name in hit.groups() if name}
    named = [node for node in nodes if short_name(node) in found]
    return named[0] if len(named) == 1 else None


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
