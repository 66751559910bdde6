"""The suspect rank where an event of the platform began the failure."""

from dataclasses import replace

from classifiers import signatures
from classifiers.contracts import JobFacts, RawCase
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.onset import Onset
from classifiers.extraction.suspects.evidence import SuspectEvidence
from classifiers.extraction.suspects.search import find_suspect

CATALOGUE = {entry.id: entry for entry in signatures.packaged().entries}
CHANGE = EvidenceItem("dshm sizeLimit now 64Mi", "initiating", Onset.DECISIVE_ENTRY, 3, 0, 0, None)


def effect(rank: int, entry: str) -> EvidenceItem:
    hits = (CATALOGUE[entry],)
    return replace(CHANGE, role="cascade", onset=Onset.NEUTRAL, line_number=7, rank=rank, hits=hits)


def test_the_rank_whose_error_a_change_led_to_is_the_suspect() -> None:
    items = [CHANGE, effect(9, "wordings.peer-gone"), effect(2, "pytorch.shm"), effect(0, "wordings.peer-gone")]
    suspect = find_suspect(SuspectEvidence(RawCase(job=JobFacts(status="failed", nodes=("n1", "n2"))), items))
    assert suspect is not None
    assert suspect.rank == 2
