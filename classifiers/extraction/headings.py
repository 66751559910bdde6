"""Lines that only announce the error below them."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.onset import Onset

_HEADING: Final = re.compile(
    r"(?i)(?:\bgraph execution error|\b\d+ root errors?\(s\) found\.?|\bfollowing (?:errors?|exceptions?|reasons?)"
    r"(?: (?:was|were|occurred|happened|raised|found|reported)){0,2}"
    r"|\b(?:one or more|multiple|several) errors? occurred)"
    r" ?[:.]?\s*$"
)
_WORDS: Final = ("rror", "xception", "eason")
_BELOW: Final = 800  # characters in which the error is looked for (judgement)


def demote_headings(items: Sequence[EvidenceItem]) -> None:
    """Let a heading be no beginning where an error that the catalogue knows follows it.

    Args:
        items: the items of one log, in order; changed in place.
    """
    begins = [item for item in items if item.role == "initiating"]
    for heading, error in pairwise(begins):
        text = heading.text
        if not any(word in text for word in _WORDS) or _HEADING.search(text) is None:
            continue
        if error.hits and 0 < error.offset - heading.offset - len(text) <= _BELOW:
            error.onset = min(error.onset, heading.onset)
            heading.role, heading.onset = "cascade", Onset.NEUTRAL
