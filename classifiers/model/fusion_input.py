"""What label fusion reads of an extracted case: votes of catalogue entries and a few facts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from classifiers.extraction.evidence_items import EvidenceItem, ExtractedCase
from classifiers.model.vectorizer import is_distributed, is_single_process

STRENGTHS: Final = ("decisive", "strong", "weak")
# Where an entry matches: the first leading line, the second and third, a leading line of which the entry is no onset,
# the scheduler's message where it is decisive or the log says nothing, the scheduler's message next to a log that does.
PLACES: Final = ("first", "following", "consequence", "scheduler", "scheduler and log")
GROUPS: Final = tuple(f"{strength}, {place}" for strength in STRENGTHS for place in PLACES)
FIRST_LINE: Final = frozenset(number for number, group in enumerate(GROUPS) if group.endswith(", first"))
_LEADING_LINES: Final = 3


@dataclass(frozen=True, slots=True)
class Vote:
    """A catalogue entry that matches a case, and its group: how strong the entry is and where it matches."""

    entry: str
    group: int


@dataclass(frozen=True, slots=True)
class FusionInput:
    """What label fusion reads of a case.

    Attributes:
        votes: the entries that match its leading lines or the scheduler's message.
        deciding_entry: the id of a decisive entry on the first line, None without one.
        has_onset: whether its first item is an initiating one.
        begins_with_event: whether its first item is a node event.
        distributed: whether the job had several processes, as far as event and log show.
        single_process: whether event and log show one process.
        lines: lines of all logs together.
    """

    votes: tuple[Vote, ...]
    deciding_entry: str | None
    has_onset: bool
    begins_with_event: bool
    distributed: bool
    single_process: bool
    lines: int


def fusion_input(extracted: ExtractedCase) -> FusionInput:
    """What label fusion reads of an extracted case."""
    items = extracted.items
    deciding = (hit.id for item in items[:1] for hit in item.hits if hit.strength == "decisive" and hit.causes)
    return FusionInput(
        votes=tuple(votes_of(items)),
        deciding_entry=next(deciding, None),
        has_onset=bool(items) and items[0].role == "initiating",
        begins_with_event=bool(items) and items[0].is_node_event,
        distributed=is_distributed(extracted),
        single_process=is_single_process(extracted),
        lines=extracted.lines,
    )


def votes_of(items: Sequence[EvidenceItem]) -> list[Vote]:
    """The votes of a case's items, best first."""
    initiating = [item for item in items if item.role == "initiating" and not item.from_scheduler]
    leading = initiating or [item for item in items if item.hits and not item.from_scheduler]
    votes = []
    for place, item in enumerate(leading[:_LEADING_LINES]):
        for hit in item.hits:
            at = "consequence" if hit.role != "initiating" else "following" if place else "first"
            votes.append(Vote(hit.id, _group(hit.strength, at)))
    log_has_votes = bool(initiating) or any(item.hits for item in leading)
    for item in items:
        if item.from_scheduler:
            for hit in item.hits:
                alone = hit.strength == "decisive" or not log_has_votes
                votes.append(Vote(hit.id, _group(hit.strength, "scheduler" if alone else "scheduler and log")))
    return votes


def _group(strength: str, place: str) -> int:
    return STRENGTHS.index(strength) * len(PLACES) + PLACES.index(place)
