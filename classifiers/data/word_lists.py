"""Word lists: packaged files of named entries, each with the words that identify a line."""

import tomllib
from collections.abc import Collection, Iterable
from importlib.resources import files
from typing import Any, Final

import ahocorasick_rs

VERSION: Final = 1
_KEYS: Final = frozenset({"name", "words", "source"})


def entries(file: str, table: str, *, flags: Collection[str] = ()) -> list[dict[str, Any]]:
    """The entries of a packaged list, in order: `name`, `words` (in lower case), `source` and flags.

    Args:
        file: the name of the file.
        table: the name of the table that holds the entries.
        flags: names of the fields that an entry may have as well.

    Raises:
        ValueError: the file does not follow the format; the message names file and entry.
    """
    data = tomllib.loads(files("classifiers.data").joinpath("cues", file).read_text(encoding="utf-8"))
    if data.get("version") != VERSION:
        raise ValueError(f"{file}: expected version = {VERSION}")
    listed: list[dict[str, Any]] = data.get(table, [])
    for entry in listed:
        where = f"{file}: {entry.get('name') or '?'}"
        if set(entry) - set(flags) != _KEYS or not (entry["name"] and entry["source"] and entry["words"]):
            allowed = f", and nothing else but {', '.join(flags)}" if flags else ""
            raise ValueError(f"{where}: expected name, words and source{allowed}")
        for word in entry["words"]:
            if not word or word != word.lower():
                raise ValueError(f"{where}: expected a lower-case word: {word!r}")
    return listed


def automaton(words: Iterable[str]) -> ahocorasick_rs.AhoCorasick:
    """An automaton that finds words in a lower-case text and gives the index of each."""
    return ahocorasick_rs.AhoCorasick(list(words), implementation=ahocorasick_rs.Implementation.DFA)
