"""Whether a text holds a name as a word, or quotes another text."""

import builtins
import re
from typing import Final

_WORD: Final = re.compile(r"[a-z0-9_]+")
_ERROR: Final = re.compile(r"\b(?:[A-Z][a-z0-9]{2,20}){2,6}\b")  # ExpiredToken
_OF_LANGUAGE: Final = frozenset(dir(builtins))
_QUOTED_WORDS: Final = 4  # in a row (judgement: fewer are in many texts)
_QUOTED_LENGTH: Final = 16  # characters of them (judgement)


def is_word_in(name: str, text: str) -> bool:
    """Whether a name is in a text, with no letter or digit after it."""
    at = text.find(name)
    while at >= 0:
        if not text[at + len(name) : at + len(name) + 1].isalnum():
            return True
        at = text.find(name, at + 1)
    return False


def is_whole_word_in(name: str, text: str) -> bool:
    """Whether a name is in a text, with no letter or digit before or after it."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not text[max(0, at - 1) : at].isalnum() and not text[end : end + 1].isalnum():
            return True
        at = text.find(name, at + 1)
    return False


def quotes(text: str, other: str) -> bool:
    """Whether a text names an error that another one names, or some of its words are there in a row.

    Errors of the language itself are of any program. It does not matter what stands between the words.
    """
    if not set(_ERROR.findall(text)).isdisjoint(set(_ERROR.findall(other)) - _OF_LANGUAGE):
        return True
    words = _WORD.findall(text.lower())
    rest = f" {' '.join(_WORD.findall(other.lower()))} "
    for at in range(len(words) - _QUOTED_WORDS + 1):
        part = " ".join(words[at : at + _QUOTED_WORDS])
        if len(part) >= _QUOTED_LENGTH and f" {part} " in rest:
            return True
    return False
