"""Cues around a failing line (`classifiers/data/cues`): the stage of training, how the failure showed, its reach.

Words that programs print are in log.toml. Words that only people write are in report.toml; they count only in reports.

The same last line (`TypeError: can't pickle ...`) means another symptom of distributed training (Liu et al. 2023) where
a model is saved than where a loader starts its workers. The calls in the traceback and the lines before show which.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import ahocorasick_rs

from classifiers.data import word_lists
from classifiers.extraction import benign_lines
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.patterns.literal_search import Literals
from classifiers.report_detection import is_report

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
    """All cues of log.toml and report.toml.

    Attributes:
        words: their words, those in ASCII first.
        ascii_words: finds the words in ASCII in a lower-case text: the places are the same.
        names: the cue of each word.
        of_reports: the places of the words of report.toml.
        stages: the cues that are stages.
        shared: the cues that every head of the classifier reads, not only that of the symptom.
    """

    words: tuple[str, ...]
    ascii_words: Literals
    names: tuple[str, ...]
    of_reports: frozenset[int]
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
    stages: set[str] = set()
    shared = {FOR_HOURS}
    for file, of_reports in (("log.toml", False), ("report.toml", True)):
        for entry in word_lists.entries(file, "mark", flags=("stage", "shared")):
            if entry.get("stage"):
                stages.add(entry["name"])
            if entry.get("shared"):
                shared.add(entry["name"])
            for word in entry["words"]:
                owners.setdefault(word, (entry["name"], of_reports))
    words = sorted(owners, key=lambda word: (not word.isascii(), word))
    return CueIndex(
        words=tuple(words),
        ascii_words=Literals([word for word in words if word.isascii()]),
        names=tuple(owners[word][0] for word in words),
        of_reports=frozenset(place for place, word in enumerate(words) if owners[word][1]),
        stages=frozenset(stages),
        shared=frozenset(shared),
    )


def _find_words(low: str) -> list[tuple[int, int, int]]:
    """The words in a lower-case text: the place of each among all, its begin and its end."""
    if low.isascii():
        return cues().ascii_words.find(low)
    return _all_words().find_matches_as_indexes(low, overlapping=True)


@cache
def _all_words() -> ahocorasick_rs.AhoCorasick:
    """Finds the words in any alphabet in a lower-case text, at half the speed."""
    return word_lists.automaton(cues().words)


def find_cues(text: str, is_of_report: Callable[[], bool]) -> StageCues:
    """The cues in a text; a word that begins with a letter counts only at the beginning of a word.

    Chinese is written without spaces: there, and after it, a word begins anywhere.

    Args:
        text: the text.
        is_of_report: whether the text is, or is part of, a report: words of report.toml count only there. It is called
            only at such a word, since logs seldom have one.
    """
    index = cues()
    found: set[str] = set()
    last_stage, last_begin = "", -1
    report: bool | None = None
    low = text.lower()
    for word, begin, _ in _find_words(low):
        if begin and low[begin].isalpha() and low[begin - 1].isascii() and low[begin - 1].isalpha():
            continue
        if word in index.of_reports:
            report = is_of_report() if report is None else report
            if not report:
                continue
        name = index.names[word]
        found.add(name)
        if begin >= last_begin and name in index.stages:
            last_stage, last_begin = name, begin
    if _FOR_HOURS.search(text) is not None:
        found.add(FOR_HOURS)
    return StageCues(tuple(sorted(found)), last_stage)


def cues_near_first_item(texts: Sequence[str], items: Sequence[EvidenceItem], closing: int | None = None) -> StageCues:
    """The cues around the first item of a log: in its traceback and a little before; in all of a short log.

    Args:
        texts: the logs.
        items: the items, most telling first.
        closing: where the job begins to be ended, in the log of the first item; None where nothing tells.
    """
    first = next((item for item in items if not item.from_scheduler and item.stream < len(texts)), None)
    if first is None:
        return StageCues()
    text = texts[first.stream]
    if len(text) <= _SHORT_LOG:
        near = "\n".join(benign_lines.drop_routine(text[:closing].splitlines(), of_report=is_report(text)))
    else:
        end = first.offset + len(first.text)
        begin = max(0, min(first.start_offset, first.offset) - _BEFORE, end - _MOST)
        near = text[begin : end + _AFTER if closing is None else min(end + _AFTER, closing)]
    return find_cues(near, lambda: is_report(text))
