"""Cues around a failing line: the stage of training that it is in (failure_stage.toml) and its reach (reach.toml).

The same last line (`TypeError: can't pickle ...`) means another symptom of distributed training (Liu et al. 2023) where
a model is saved than where a loader starts its workers. The calls in the traceback and the lines before show which.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import ahocorasick_rs

from classifiers.extraction import benign_lines, word_lists
from classifiers.extraction.evidence_items import EvidenceItem

# How much of a log is read around the first item, in characters (judgement: a traceback and what was printed before).
_SHORT_LOG: Final = 3_000
_BEFORE: Final = 1_200
_MOST: Final = 6_000
_AFTER: Final = 300
# Kubernetes' events show how often and for how long. What was tried again for hours will not pass without a repair.
FOR_HOURS: Final = "for-hours"
_FOR_HOURS: Final = re.compile(r"\(x\d+ over \d+[hd]")


@dataclass(frozen=True)
class CueIndex:
    """All cues of failure_stage.toml and reach.toml.

    Attributes:
        automaton: finds their words in a lower-case text.
        names: the cue of each word.
        stages: the cues that are stages.
        shared: the cues that every head of the classifier reads, not only that of the symptom.
    """

    automaton: ahocorasick_rs.AhoCorasick
    names: tuple[str, ...]
    stages: frozenset[str]
    shared: frozenset[str]


@dataclass(frozen=True, slots=True)
class StageCues:
    """The cues found in a text, by name, and the stage named last, "" where none is."""

    found: tuple[str, ...] = ()
    last_stage: str = ""


@cache
def cues() -> CueIndex:
    """The packaged cues.

    Raises:
        ValueError: a file does not follow the format; the message names the entry.
    """
    owners: dict[str, tuple[str, bool]] = {}
    shared = {FOR_HOURS}
    for file in ("failure_stage.toml", "reach.toml"):
        for entry in word_lists.entries(file, "mark", flags=("stage",)):
            if file == "reach.toml":
                shared.add(entry["name"])
            for word in entry["words"]:
                owners.setdefault(word, (entry["name"], bool(entry.get("stage", False))))
    words = sorted(owners)
    return CueIndex(
        automaton=word_lists.automaton(words),
        names=tuple(owners[word][0] for word in words),
        stages=frozenset(name for name, is_stage in owners.values() if is_stage),
        shared=frozenset(shared),
    )


def find_cues(text: str) -> StageCues:
    """The cues in a text; a word that begins with a letter counts only at the beginning of a word.

    Chinese is written without spaces: there, and after it, a word begins anywhere.
    """
    index = cues()
    found: set[str] = set()
    last_stage, last_begin = "", -1
    low = text.lower()
    for word, begin, _ in index.automaton.find_matches_as_indexes(low, overlapping=True):
        if begin and low[begin].isalpha() and low[begin - 1].isascii() and low[begin - 1].isalpha():
            continue
        name = index.names[word]
        found.add(name)
        if begin >= last_begin and name in index.stages:
            last_stage, last_begin = name, begin
    if _FOR_HOURS.search(text) is not None:
        found.add(FOR_HOURS)
    return StageCues(tuple(sorted(found)), last_stage)


def cues_near_first_item(texts: Sequence[str], items: Sequence[EvidenceItem]) -> StageCues:
    """The cues around the first item of a log: in its traceback and a little before; in all of a short log."""
    first = next((item for item in items if not item.from_scheduler and item.stream < len(texts)), None)
    if first is None:
        return StageCues()
    text = texts[first.stream]
    if len(text) <= _SHORT_LOG:
        return find_cues("\n".join(benign_lines.drop_benign(text.splitlines())))
    end = first.offset + len(first.text)
    begin = max(0, min(first.start_offset, first.offset) - _BEFORE, end - _MOST)
    return find_cues(text[begin : end + _AFTER])
