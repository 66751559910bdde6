"""Names of nodes as logs, kernels and schedulers write them: with a domain, in capitals, or as a list in short form."""

import re
from typing import Final

_LIST: Final = re.compile(r"(?<![\w.-])(?P<stem>[A-Za-z][\w-]{0,40}?)\[(?P<numbers>\d{1,6}(?:[,-]\d{1,6}){0,64})\]")
_MOST: Final = 1_024  # nodes of a list that are written out (judgement)


def short_name(node: str) -> str:
    """A node's name without its domain, in lower case: by it, names of different sources are compared."""
    return node.partition(".")[0].lower()


def written_out(text: str) -> str:
    """A text with each list of nodes written out: gpu[03-05,9] becomes gpu03,gpu04,gpu05,gpu9."""
    return _LIST.sub(_names, text) if "[" in text else text


def _names(found: re.Match[str]) -> str:
    names: list[str] = []
    for part in found["numbers"].split(","):
        ends = part.split("-")
        first, last = ends[0], ends[-1]
        if len(ends) > 2 or int(last) < int(first) or len(names) + int(last) - int(first) >= _MOST:  # noqa: PLR2004
            return found[0]
        names += [f"{found['stem']}{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
    return ",".join(names)
