"""Lines that any run prints (benign_lines.toml), as opposed to lines that may be about the failure.

A log has start-up warnings, help texts of launchers and notices of libraries around a failure. The causes and missing
parts that they mention are no evidence on it.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

import ahocorasick_rs

from classifiers.extraction import word_lists

_SHORTEST: Final = 8  # letters; a shorter phrase may be part of any line (judgement)


# Python's warnings module prints the place before the class; an exception of that name has no place before it.
_PYTHON_WARNING: Final = re.compile(r"(?:\.py|>):\d+: \w*Warning: ")
_ZERO: Final = re.compile(r"\b(?:0|0\.0+%?|no|zero|none|false|without)\b")
_TROUBLE: Final = (
    r"(?:\w*(?:error|fail|corrupt|missing|mismatch|skip|stall|lost|invalid|unexpected|time-?out|retr|drop|exceed|nan"
    r"|overflow)\w*)"
)
_COUNTED_NONE: Final = re.compile(
    rf"\b(?:0|no|zero|without(?: any)?)\b(?:[ -][\w-]+){{0,2}}?[ -]{_TROUBLE}(?:[ _-]\w+)?"
    rf"|{_TROUBLE}(?:[ _-]\w+){{0,2}}[\"']?\s{{0,2}}[:=]?\s{{0,3}}[\[(]?(?:0(?:\.0+)?%?\b|none\b|false\b|no\b(?! +\w)|\[\])"
)
# An error that is measured, as in "word error rate 0.12" or "val_error=3.1e-02".
_METRIC: Final = re.compile(
    r"\b[\w-]*err(?:or)?s?(?:[ _](?:rate|norm|mean|std|loss))?[\"']?\s{0,2}[:=(]?\s{0,3}\d+\.\d+(?:e[+-]?\d+)?%?"
)
_PATH: Final = re.compile(r"[^\s'\"]*/[^\s'\"]*")
_RANGE: Final = 400  # characters of a line that are read (judgement)


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
    if "Warning: " in line and _PYTHON_WARNING.search(line) is not None:
        return True
    return bool(phrases().find_matches_as_indexes(line.lower()))


def says_none_failed(message: str, words: Iterable[str]) -> bool:
    """Whether a line has words of failure only in paths, or to say that there was none ("0 errors").

    Args:
        message: the line without its header.
        words: the words of failure in it, in lower case.
    """
    low = message[:_RANGE].lower()
    rest = _COUNTED_NONE.sub(" ", low) if _ZERO.search(low) else low
    rest = _METRIC.sub(" ", rest) if "err" in rest else rest
    if "/" in rest:
        rest = _PATH.sub(" ", rest)
    return rest != low and not any(word in rest for word in words)


def drop_benign(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines that may be about a failure; all of them where no other was printed."""
    kept = tuple(line for line in lines if not is_benign(line))
    return kept if any(line.strip() for line in kept) else tuple(lines)
