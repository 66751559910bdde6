"""Words of a log line: tokens without numbers and identifiers, spelled one way, and pairs of neighbours."""

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

from classifiers.model import constants

_TOKEN: Final = re.compile(
    r"[a-z][a-z0-9+.-]{1,15}://[^\s'\"<>)\]]+"
    r"|(?:[A-Za-z]:)?[~.]{0,2}(?:[/\\][\w.@+-]+){2,}[/\\]?"
    r"|0x[0-9a-fA-F]+"
    r"|[A-Za-z_][\w]*(?:'[a-z])?"
    r"|\d+(?:\.\d+)*"
    r"|[\u4e00-\u9fff]",  # Chinese has no spaces: a sign is a word, and pairs of signs are what words are elsewhere
    re.ASCII,
)
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HEXADECIMAL: Final = re.compile(r"(?=[0-9a-f]*\d)[0-9a-f]{7,}")
# British and American spelling are one word: initialise, analysed, colour, cancelled.
_SPELLINGS: Final = (
    (re.compile(r"(?<=\w{3})([iy])s(?=(?:e|ed|es|er|ers|ing|ation|ations)$)"), r"\1z"),
    (re.compile(r"(?<=\w{3})our(?=s?$)"), "or"),
    (re.compile(r"(?<=\w{3})ll(?=(?:ed|ing)$)"), "l"),
)
# Exit codes, signals, errno values and HTTP statuses.
_KNOWN_CODES: Final = frozenset(
    {
        "1", "2", "6", "7", "8", "9", "11", "12", "13", "15", "28", "30", "104", "110", "111", "113", "122", "126",
        "127", "129", "134", "135", "137", "139", "143", "255", "400", "401", "403", "404", "408", "409", "429", "500",
        "502", "503", "504",
    }
)  # fmt: skip
_STOP_WORDS: Final = frozenset(
    {
        "the", "a", "an", "of", "to", "in", "on", "at", "by", "is", "was", "be", "been",
        "are", "for", "and", "or", "with", "as", "it", "its", "this", "that", "from", "has", "have",
    }
)  # fmt: skip
_EXTENSION_LENGTH: Final = 5


@lru_cache(maxsize=16_384)
def words(line: str) -> tuple[str, ...]:
    """The words of a line in order and then the pairs of neighbours, each once."""
    found: list[str] = []
    for token in _TOKEN.findall(line[: constants.LINE_CHARACTERS])[: constants.LINE_TOKENS]:
        found += _words_of_token(token)
    pairs = [f"{one} {other}" for one, other in pairwise(found) if one != "#" or other != "#"]
    return tuple(dict.fromkeys([*found, *pairs]))


def is_known_code(number: int) -> bool:
    """Whether a number is an exit code, signal or status that keeps its value as a word."""
    return str(number) in _KNOWN_CODES


@lru_cache(maxsize=65_536)
def _words_of_token(token: str) -> tuple[str, ...]:
    if "://" in token:
        return ("<url>",)
    if token[0].isdigit():
        return _number(token)
    if "/" in token or "\\" in token:
        return _path(token)
    return _identifier(token)


def _number(token: str) -> tuple[str, ...]:
    if token.startswith("0x"):
        return ("<hex>",)
    return (token if token in _KNOWN_CODES else "#",)


def _path(token: str) -> tuple[str, ...]:
    name, dot, extension = token.rstrip("/\\").rpartition(".")
    if dot and name and len(extension) <= _EXTENSION_LENGTH:
        return ("<path>", f"<.{extension.lower()}>")
    return ("<path>",)


def _identifier(token: str) -> tuple[str, ...]:
    """A word as spelled and shortened; one of several joined words whole and in parts."""
    low = token.lower()
    if low in _STOP_WORDS:
        return ()
    if _HEXADECIMAL.fullmatch(low):
        return ("<hex>",)
    if "_" in token or (low != token and token[1:].lower() != token[1:] and not token.isupper()):
        parts = [_shortened(part.lower()) for part in _PART.findall(token)]
        if len(parts) > 1:
            return (low[:40], *(part for part in parts if part not in _STOP_WORDS and not part.isdigit()))
    return (_shortened(low),)


def _shortened(word: str) -> str:
    """The word in American spelling, cut to the length of a feature."""
    for pattern, ending in _SPELLINGS:
        word = pattern.sub(ending, word)
    return word[: constants.WORD_LENGTH]
