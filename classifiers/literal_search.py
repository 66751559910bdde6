"""Search for many words at once: one automaton over bytes, with positions in characters."""

import re
from collections.abc import Sequence
from typing import Final

import ahocorasick_rs

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")


class Literals:
    """An Aho-Corasick automaton over ASCII words. Building it takes some milliseconds: build it once.

    Over bytes it is a third faster than over text, for which the position of every character is computed first. Each
    character that is not ASCII becomes one control character, so that positions agree.

    Raises:
        ValueError: a word is not ASCII.
    """

    def __init__(self, words: Sequence[str]) -> None:
        not_ascii = next((word for word in words if not word.isascii()), None)
        if not_ascii is not None:
            raise ValueError(f"{not_ascii!r}: expected a word in ASCII")
        self._automaton = ahocorasick_rs.BytesAhoCorasick(
            [word.encode() for word in words],
            matchkind=ahocorasick_rs.MatchKind.Standard,
            implementation=ahocorasick_rs.Implementation.DFA,
        )

    def find(self, text: str) -> list[tuple[int, int, int]]:
        """All matches as (index of the word, begin, end) in characters, ordered by end; they may overlap."""
        ascii_text = text if text.isascii() else _NOT_ASCII.sub("\x01", text)
        return self._automaton.find_matches_as_indexes(ascii_text.encode(), overlapping=True)
