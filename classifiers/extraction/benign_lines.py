"""Lines that any run prints (benign_lines.toml), as opposed to lines that may be about the failure.

A log has start-up warnings, help texts of launchers and notices of libraries around a failure. The causes and missing
parts that they mention are no evidence on it.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

import ahocorasick_rs

from classifiers.extraction import word_lists

_SHORTEST: Final = 8  # letters; a shorter phrase may be part of any line (judgement)


@cache
def phrases() -> ahocorasick_rs.AhoCorasick:
    """An automaton over the packaged phrases, for a text in lower case.

    Raises:
        ValueError: the file does not follow the format; the message names the entry.
    """
    listed = word_lists.entries("benign_lines.toml", "harmless")
    for entry in listed:
        for word in entry["words"]:
            if len(word) < _SHORTEST:
                raise ValueError(f"benign_lines.toml: {entry['name']}: expected {_SHORTEST} letters or more: {word!r}")
    return word_lists.automaton(word for entry in listed for word in entry["words"])


def is_benign(line: str) -> bool:
    """Whether runs that fail and runs that succeed both print a line."""
    return bool(phrases().find_matches_as_indexes(line.lower()))


def drop_benign(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines that may be about a failure; all of them where no other was printed."""
    kept = tuple(line for line in lines if not is_benign(line))
    return kept if any(line.strip() for line in kept) else tuple(lines)
