"""Whether a case shows only that processes lost one another: then no log tells what the first of them failed of."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from classifiers.contracts import Progress
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.process_exits import ProcessExit
from classifiers.relevance.event_rules import timeouts, waits

UNKNOWN: Final = 0.5
"""The confidence of a side on the user's account then (judgement): a program ends as often as nodes and networks do."""


@cache
def losses() -> frozenset[str]:
    """Ids of the entries by which a process says that another one is gone, not that it waited for it until a limit.

    Ranks that wait for one another until a limit are mostly a program's fault.
    """
    return waits() - timeouts()


def shows_only_losses(
    items: Iterable[EvidenceItem], exits: Sequence[ProcessExit], progress: Progress | None, nodes: int
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
    if any(one.is_violent for one in exits):
        return False
    begins = [item for item in items if item.role == "initiating"]
    return bool(begins) and all(item.hits and losses().issuperset(hit.id for hit in item.hits) for item in begins)
