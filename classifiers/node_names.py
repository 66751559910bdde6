"""Names of nodes as logs, kernels and schedulers write them: with a domain, in capitals, or as a list in short form."""

import re
from functools import lru_cache
from typing import Final

_LIST: Final = re.compile(r"(?<![\w.-])(?P<stem>[A-Za-z][\w-]{0,40}?)\[(?P<numbers>\d{1,6}(?:[,-]\d{1,6}){0,64})\]")
# The first and the last of some nodes: gpu03..gpu05, gpu03 to gpu05.
_FROM_TO: Final = re.compile(
    r"(?<![\w.-])(?P<stem>[A-Za-z](?:[\w-]{0,40}[A-Za-z-])?)(?P<first>\d{1,6})(?:\.\.\.?| to | through | - )"
    r"(?P=stem)(?P<last>\d{1,6})(?![\w.-])"
)
_ENDS_IN_ADDRESS: Final = re.compile(r"(?<![^.])\d{1,3}(?:\.\d{1,3}){3}$")
# Part of every match of `_FROM_TO`, and found faster.
_TO: Final = re.compile(r"\d(?:\.\.\.?| to | through | - )[A-Za-z]")
_MOST: Final = 1_024  # nodes of a list that are written out (judgement)


def short_name(node: str) -> str:
    """A node's name without its domain, in lower case: by it, names of different sources are compared.

    A name that is an IPv4 address or ends in one (10.0.3.17, cn-hangzhou.192.168.0.5) has no domain and stays whole.
    """
    short = node.partition(".")[0]
    if len(short) < len(node) and _ENDS_IN_ADDRESS.search(node) is not None:
        return node.lower()
    return short.lower()


@lru_cache(maxsize=4_096)  # several questions about an event need its text so
def written_out(text: str) -> str:
    """A text with each list of nodes written out: gpu[03-05,9] becomes gpu03,gpu04,gpu05,gpu9; and gpu03..gpu05."""
    text = _LIST.sub(_names, text) if _may_have_list(text) else text
    may_have = (".." in text or " to " in text or " - " in text) and _TO.search(text) is not None
    return _FROM_TO.sub(_between, text) if may_have else text


def _may_have_list(text: str) -> bool:
    """Whether a bracket with a number stands behind a word; the expression reads each word."""
    at = text.find("[", 1)
    while at > 0:
        if text[at + 1 : at + 2].isdigit() and (text[at - 1].isalnum() or text[at - 1] in "_-"):
            return True
        at = text.find("[", at + 1)
    return False


def _between(found: re.Match[str]) -> str:
    return ",".join(_numbered(found["stem"], found["first"], found["last"], _MOST)) or found[0]


def _numbered(stem: str, first: str, last: str, most: int) -> list[str]:
    """The names from a first to a last number, with as many digits; none for a list that is too long or reversed."""
    if int(last) < int(first) or int(last) - int(first) >= most:
        return []
    return [f"{stem}{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]


def _names(found: re.Match[str]) -> str:
    names: list[str] = []
    for part in found["numbers"].split(","):
        ends = part.split("-")
        first, last = ends[0], ends[-1]
        some = _numbered(found["stem"], first, last, _MOST - len(names)) if len(ends) <= 2 else []  # noqa: PLR2004
        if not some:
            return found[0]
        names += some
    return ",".join(names)
