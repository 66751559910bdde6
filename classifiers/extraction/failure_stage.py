"""Reads what stands around a failing line: of the stage it fell in (failure_stage.toml) and of its reach (reach.toml).

The same last line (`TypeError: can't pickle ...`) means another symptom of distributed training (Liu et al. 2023) where
a model is saved than where a loader starts its workers: the calls on the traceback and what was printed before tell.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import ahocorasick_rs

from classifiers.extraction import benign_lines, word_lists
from classifiers.extraction.evidence_items import Item

_WHOLE: Final = 3_000
_BEFORE: Final = 1_200
_MOST: Final = 6_000
_AFTER: Final = 300
# Kubernetes' events tell how often and for how long: what was tried again for hours does not pass by itself.
FOR_HOURS: Final = "for-hours"
_FOR_HOURS: Final = re.compile(r"\(x\d+ over \d+[hd]")


@dataclass(frozen=True)
class Marks:
    """All of failure_stage.toml and reach.toml: an automaton over the words, and of each word its mark.

    `stages`: the marks that are stages; `shared`: those that every head reads.
    """

    automaton: ahocorasick_rs.AhoCorasick
    names: tuple[str, ...]
    stages: frozenset[str]
    shared: frozenset[str]


@dataclass(frozen=True, slots=True)
class Stages:
    """The marks found, by name, and the stage named last, "" where none is."""

    found: tuple[str, ...] = ()
    last: str = ""


@cache
def marks() -> Marks:
    """The packaged marks: of stages those of failure_stage.toml, of all heads those of reach.toml.

    Raises:
        ValueError: a file is not as its format asks; the text names the entry.
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
    return Marks(
        automaton=word_lists.automaton(words),
        names=tuple(owners[word][0] for word in words),
        stages=frozenset(name for name, is_stage in owners.values() if is_stage),
        shared=frozenset(shared),
    )


def read(text: str) -> Stages:
    """The marks in a stretch of a log; a word that begins with a letter counts only where a word begins.

    Chinese is written without spaces: there, and after it, a word begins anywhere.
    """
    known = marks()
    names, are_stages = known.names, known.stages
    found: set[str] = set()
    last, at = "", -1
    low = text.lower()
    for index, begin, _ in known.automaton.find_matches_as_indexes(low, overlapping=True):
        if begin and low[begin].isalpha() and low[begin - 1].isascii() and low[begin - 1].isalpha():
            continue
        name = names[index]
        found.add(name)
        if begin >= at and name in are_stages:
            last, at = name, begin
    if _FOR_HOURS.search(text) is not None:
        found.add(FOR_HOURS)
    return Stages(tuple(sorted(found)), last)


def around(texts: Sequence[str], items: Sequence[Item]) -> Stages:
    """What stands around the first item of a log: its traceback and a little before; a short log whole."""
    first = next((one for one in items if not one.scheduler and one.stream < len(texts)), None)
    if first is None:
        return Stages()
    text = texts[first.stream]
    if len(text) <= _WHOLE:
        return read("\n".join(benign_lines.without(text.splitlines())))
    end = first.offset + len(first.text)
    begin = max(0, min(first.begin, first.offset) - _BEFORE, end - _MOST)
    return read(text[begin : end + _AFTER])
