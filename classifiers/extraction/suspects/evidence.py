"""What the search for a suspect reads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from classifiers.contracts import RawCase
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.line_attribution import LineAttribution
from classifiers.extraction.onset import Onset
from classifiers.extraction.process_exits import ProcessExit
from classifiers.extraction.ranks import ranks_on_node
from classifiers.node_names import short_name

_OF_STEP: Final = ("slurmstepd", "srun: ", "mpirun", "prterun", "torchrun")


@dataclass(frozen=True)
class SuspectEvidence:
    """All that the search for a suspect reads.

    Attributes:
        raw: the case.
        items: its evidence items in order.
        exits: the process exits that launchers report.
        missing: ranks that other ranks report as missing, once for each report.
        attributions: who printed which line, one for each log with text.
    """

    raw: RawCase
    items: Sequence[EvidenceItem]
    exits: Sequence[ProcessExit] = ()
    missing: Sequence[int] = ()
    attributions: Sequence[LineAttribution] = ()

    @cached_property
    def complaints(self) -> list[EvidenceItem]:
        """The items by which a rank reports trouble."""
        return [item for item in self.items if item.rank is not None and item.role in {"cascade", "initiating"}]

    @cached_property
    def own_beginnings(self) -> list[EvidenceItem]:
        """The items by which a rank reports a beginning of its own; where a node began it those of the node's ranks."""
        own = [
            item
            for item in self.items
            if item.role == "initiating"
            and item.onset < Onset.ERROR_WORDS
            and not (item.hits and all(hit.role != "initiating" for hit in item.hits))
            and item.rank is not None
            and (not item.missing_ranks or item.rank in item.missing_ranks)
            and not item.message.lstrip().startswith(_OF_STEP)  # labelled with the rank of the step, not said by it
        ]
        first = next((item for item in self.items if item.role == "initiating"), None)
        if first is not None and first.rank is None and first.node is not None:
            there = ranks_on_node(self.raw, self.items, first.node, self.exits)
            return [item for item in own if item.rank in there] or own
        return own


def with_ranks_of_nodes(evidence: SuspectEvidence) -> SuspectEvidence:
    """The same evidence with ranks in place of the numbers of tasks, where a launcher started one task on each node.

    The logs of the node of such a task are then of later ranks than its number.
    """
    nodes = len(evidence.raw.job.nodes)
    exits = list(evidence.exits)
    for number, one in enumerate(exits):
        if one.rank is None or one.node is None or one.reported_first or not 0 < one.rank < nodes:
            continue
        there = {
            log.rank
            for log in evidence.raw.streams
            if log.rank is not None and log.node and short_name(log.node) == short_name(one.node)
        }
        if there and min(there) > one.rank and min(there) % one.rank == 0:
            exits[number] = replace(one, rank=min(there))
    return replace(evidence, exits=exits) if exits != list(evidence.exits) else evidence
