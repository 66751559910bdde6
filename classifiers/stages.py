"""Reads what the neighbourhood of a failing line tells of the stage it fell in: stages.toml.

The same last line (`TypeError: can't pickle ...`) means another symptom of distributed training (Liu et al. 2023) where
a model is saved than where a loader starts its workers: the calls on the traceback and what was printed before tell.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import ahocorasick_rs

from classifiers.items import Item

VERSION: Final = 1
_WHOLE: Final = 3_000
_BEFORE: Final = 1_200
_MOST: Final = 6_000
_AFTER: Final = 300


@dataclass(frozen=True)
class Marks:
    """All of stages.toml: an automaton over the words, of each word its mark, and the marks that are stages."""

    automaton: ahocorasick_rs.AhoCorasick
    names: tuple[str, ...]
    stages: frozenset[str]


@dataclass(frozen=True, slots=True)
class Stages:
    """The marks found, by name, and the stage named last, "" where none is."""

    found: tuple[str, ...] = ()
    last: str = ""


@cache
def marks() -> Marks:
    """The packaged marks.

    Raises:
        ValueError: the file is not as its format asks; the text names the entry.
    """
    data = tomllib.loads(files("classifiers").joinpath("stages.toml").read_text(encoding="utf-8"))
    if data.get("version") != VERSION:
        raise ValueError(f"stages.toml: expected version = {VERSION}")
    owners: dict[str, tuple[str, bool]] = {}
    for entry in data["mark"]:
        name = str(entry.get("name", ""))
        if set(entry) - {"name", "stage", "words", "source"} or not (name and entry.get("source")):
            raise ValueError(f"stages.toml: {name or '?'}: expected name, words and source, and nothing else but stage")
        for word in entry["words"]:
            owners.setdefault(str(word).lower(), (name, bool(entry.get("stage", False))))
    words = sorted(owners)
    return Marks(
        automaton=ahocorasick_rs.AhoCorasick(
            words,
            matchkind=ahocorasick_rs.MatchKind.Standard,
            implementation=ahocorasick_rs.Implementation.DFA,
        ),
        names=tuple(owners[word][0] for word in words),
        stages=frozenset(name for name, is_stage in owners.values() if is_stage),
    )


def read(text: str) -> Stages:
    """The marks in a stretch of a log; a word that begins with a letter counts only where a word begins."""
    known = marks()
    names, are_stages = known.names, known.stages
    found: set[str] = set()
    last, at = "", -1
    low = text.lower()
    for index, begin, _ in known.automaton.find_matches_as_indexes(low, overlapping=True):
        if begin and low[begin - 1].isalpha() and low[begin].isalpha():
            continue
        name = names[index]
        found.add(name)
        if begin >= at and name in are_stages:
            last, at = name, begin
    return Stages(tuple(sorted(found)), last)


def around(texts: Sequence[str], items: Sequence[Item]) -> Stages:
    """What stands around the first item of a log: its traceback and a little before; a short log whole."""
    first = next((one for one in items if not one.scheduler and one.stream < len(texts)), None)
    if first is None:
        return Stages()
    text = texts[first.stream]
    if len(text) <= _WHOLE:
        return read(text)
    end = first.offset + len(first.text)
    begin = max(0, min(first.begin, first.offset) - _BEFORE, end - _MOST)
    return read(text[begin : end + _AFTER])
