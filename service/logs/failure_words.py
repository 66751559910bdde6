"""Finds the first failure word of failure_words.toml in a piece of a log."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ahocorasick_rs import BytesAhoCorasick


@dataclass(frozen=True, slots=True)
class FailureWords:
    """One automaton for the strong words, one for the weak; `longest` is the longest word's length in bytes."""

    strong: BytesAhoCorasick
    weak: BytesAhoCorasick
    longest: int


def first(words: BytesAhoCorasick, data: bytes) -> int | None:
    """Return the offset of the first of `words` in `data`; None if there is none."""
    found = words.find_matches_as_indexes(data)
    return found[0][1] if found else None


@cache
def load_failure_words() -> FailureWords:
    """Load the words of failure_words.toml.

    Raises:
        ValueError: an entry lacks text, strength or source.
    """
    with files("service.logs").joinpath("failure_words.toml").open("rb") as file:
        entries = tomllib.load(file)["marker"]
    for entry in entries:
        if not entry.get("text") or entry.get("strength") not in {"strong", "weak"} or not entry.get("source"):
            raise ValueError(f"failure_words.toml: an entry needs text, strength (strong, weak) and source: {entry}")
    strong, weak = (
        [entry["text"].encode() for entry in entries if entry["strength"] == one] for one in ("strong", "weak")
    )
    return FailureWords(BytesAhoCorasick(strong), BytesAhoCorasick(weak), max(map(len, strong + weak)))
