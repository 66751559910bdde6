"""Tells lines that any run prints (benign_lines.toml) from those that may speak of its failure.

People paste what stands around a failure: warnings of the start, help of launchers, notices of libraries. Their words
(a cause they name, a transport they miss) are not those of the failure.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

import ahocorasick_rs

from classifiers.extraction import word_lists

_SHORTEST: Final = 8


@cache
def words() -> ahocorasick_rs.AhoCorasick:
    """The packaged words, to be looked for in lower case.

    Raises:
        ValueError: the file is not as its format asks; the text names the entry.
    """
    listed = word_lists.entries("benign_lines.toml", "harmless")
    for entry in listed:
        for word in entry["words"]:
            if len(word) < _SHORTEST:
                raise ValueError(f"benign_lines.toml: {entry['name']}: expected {_SHORTEST} letters or more: {word!r}")
    return word_lists.automaton(word for entry in listed for word in entry["words"])


def is_harmless(line: str) -> bool:
    """Whether a line is printed by runs that fail and by runs that don't."""
    return bool(words().find_matches_as_indexes(line.lower()))


def without(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines that may speak of a failure; all of them where no other was printed."""
    kept = tuple(line for line in lines if not is_harmless(line))
    return kept if any(line.strip() for line in kept) else tuple(lines)
