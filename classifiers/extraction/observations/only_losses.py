"""Whether a case shows only that processes lost one another: then no log tells what the first of them failed of."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from classifiers.contracts import Progress, RawCase, Suspect
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.process_exits import ProcessExit
from classifiers.node_names import short_name
from classifiers.relevance.entry_groups import peer_lost, wait_timeouts
from classifiers.relevance.own_nodes import FRONT_OF_LOG

UNKNOWN: Final = 0.5
"""The most confidence of a side on the user's account then (judgement): programs end as often as nodes and networks."""


@cache
def losses() -> frozenset[str]:
    """Ids of the entries by which a process says that another one is gone, not that it waited for it until a limit.

    Ranks that wait for one another until a limit are mostly a program's fault.
    """
    return peer_lost() - wait_timeouts()


def shows_only_losses(
    items: Sequence[EvidenceItem], exits: Sequence[ProcessExit], progress: Progress | None, nodes: int
) -> bool:
    """Whether a job on several nodes that made progress shows nothing but lost peers.

    Args:
        items: its evidence.
        exits: the exits that launchers report.
        progress: the last progress that its logs show.
        nodes: how many nodes it has.
    """
    if nodes < 2 or progress is None or progress.step is None:  # noqa: PLR2004
        return False
    return are_only_losses(items, exits)


def are_only_losses(items: Sequence[EvidenceItem], exits: Sequence[ProcessExit]) -> bool:
    """Whether all that began in a case are reports of lost peers, and no exit shows who ended first."""
    if any(process_exit.is_violent for process_exit in exits):
        return False
    failing = [item for item in items if item.role in {"initiating", "cascade"}]
    begins = [item for item in failing if item.role == "initiating"]
    if not begins or not all(item.hits and _among(item, peer_lost()) for item in begins):
        return False
    return any(_among(item, losses()) for item in failing if item.hits) and not any(
        hit.id in _limits() for item in failing for hit in item.hits
    )


def _among(item: EvidenceItem, entries: frozenset[str]) -> bool:
    return entries.issuperset(hit.id for hit in item.hits)


@cache
def _limits() -> frozenset[str]:
    """Ids of the entries that say that a limit was reached; NCCL's watchdog ends a process for other reasons too."""
    return wait_timeouts() - {"pytorch.nccl-watchdog-exit", "pytorch.nccl-dump-signal"}


# How NCCL names the other end of a connection that was closed, and the own address of a process.
_PEER: Final = re.compile(r"\b(?:remote|from|by) peer \[?(?P<peer>[\w.-]{3,100}?)\]?(?:<\d|:\d)")
_OWN_ADDRESS: Final = re.compile(
    r"\b(?:Bootstrap|NET/\w{2,10}) ?: Using [^\n<]{0,200}?:(?P<address>\d{1,3}(?:\.\d{1,3}){3})<"
)


def place_of_losses(
    raw: RawCase, items: Sequence[EvidenceItem], exits: Sequence[ProcessExit], suspect: Suspect
) -> Suspect:
    """The suspect where a case shows only lost peers: the node that those who report name, never one of theirs.

    A process that reports that another one is gone is alive, and so is its node.
    """
    reports = [item for item in items if item.role in {"initiating", "cascade"} and item.line_number is not None]
    nodes = {short_name(node): node for node in raw.job.nodes}
    if len(nodes) < 2 or not reports or not are_only_losses(items, exits):  # noqa: PLR2004
        return suspect
    named = {node for item in reports for node in _peers(item, raw, nodes)}
    if len(named) == 1:
        (node,) = named
        ranks = {
            stream.rank
            for stream in raw.streams
            if stream.rank is not None and stream.node and short_name(stream.node) == node
        }
        return replace(
            suspect, node=nodes[node], rank=suspect.rank if suspect.rank in ranks else min(ranks, default=None)
        )
    reporting = {short_name(item.node) for item in reports if item.node is not None}
    return replace(suspect, node=None) if suspect.node and short_name(suspect.node) in reporting else suspect


def _peers(item: EvidenceItem, raw: RawCase, nodes: Mapping[str, str]) -> Iterator[str]:
    """The nodes of the job that a report names as the other end, without its own."""
    own = short_name(item.node) if item.node is not None else None
    for hit in _PEER.finditer(item.text, 0, 2_000):
        node = short_name(hit["peer"])
        node = node if node in nodes else _addresses(raw).get(hit["peer"], "")
        if node in nodes and node != own:
            yield node


def _addresses(raw: RawCase) -> dict[str, str]:
    """The nodes by the addresses that their processes print as their own."""
    return {
        hit["address"]: short_name(stream.node)
        for stream in raw.streams
        if stream.node is not None and "Using " in stream.text
        for hit in _OWN_ADDRESS.finditer(stream.text, 0, FRONT_OF_LOG)
    }


def is_reported_by_other_node(item: EvidenceItem) -> bool:
    """Whether a line says that a node was lost and names only the node whose daemon says so, which is alive."""
    return item.line_number is not None and any(hit.id == "slurm.node-fail" for hit in item.hits)
