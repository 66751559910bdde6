"""Tells lines that any run prints (harmless.toml) from those that may speak of its failure.

People paste what stands around a failure: warnings of the start, help of launchers, notices of libraries. Their words
(a cause they name, a transport they miss) are not those of the failure.
"""

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final

import ahocorasick_rs

VERSION: Final = 1
_KEYS: Final = {"name", "words", "source"}
_SHORTEST: Final = 8


@cache
def words() -> ahocorasick_rs.AhoCorasick:
    """The packaged words, to be looked for in lower case.

    Raises:
        ValueError: the file is not as its format asks; the text names the entry.
    """
    data = tomllib.loads(files("classifiers").joinpath("harmless.toml").read_text(encoding="utf-8"))
    if data.get("version") != VERSION:
        raise ValueError(f"harmless.toml: expected version = {VERSION}")
    listed: list[str] = []
    for entry in data["harmless"]:
        if set(entry) != _KEYS or not entry["source"]:
            raise ValueError(f"harmless.toml: {entry.get('name', '?')}: expected name, words and source")
        for word in entry["words"]:
            if word != word.lower() or len(word) < _SHORTEST:
                raise ValueError(f"harmless.toml: {entry['name']}: expected {_SHORTEST} lower-case letters: {word!r}")
            listed.append(word)
    return ahocorasick_rs.AhoCorasick(listed, implementation=ahocorasick_rs.Implementation.DFA)


def is_harmless(line: str) -> bool:
    """Whether a line is printed by runs that fail and by runs that don't."""
    return bool(words().find_matches_as_indexes(line.lower()))


def without(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines that may speak of a failure; all of them where no other was printed."""
    kept = tuple(line for line in lines if not is_harmless(line))
    return kept if any(line.strip() for line in kept) else tuple(lines)
