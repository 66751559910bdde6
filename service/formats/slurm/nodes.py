"""Slurm's hostlist expressions (`gpu[001-004,007],login2`) expanded to node names."""

import re

import hostlist

from service.formats.field_reading import unreadable

NODES_MOST = 100_000
_NONE = frozenset({"(null)", "None", "None assigned", "N/A"})
_PART = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_LONGEST = 256 * 1024
_BRACKETS_MOST = 8
_NAME_LONGEST = 255  # a DNS name
_BRACKET = re.compile(r"\[[^\[\]]*\]")
_BROKEN_BRACKET = re.compile(r"\[[^\]]*\n")  # the library does not end on a line break between brackets
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")


def expand_nodes(expression: str | None, field: str) -> tuple[str, ...]:
    """Return the distinct names in order; at most 100,000.

    Raises:
        UnreadableRecord: the expression is invalid or names too many nodes.
    """
    if expression is None or expression in _NONE:
        return ()
    if expression.isalnum():
        return (expression,)
    wrong = unreadable(field, 'a hostlist such as "gpu[001-004,007]"', expression)
    too_many = unreadable(field, f"a hostlist of at most {NODES_MOST} nodes", expression)
    if len(expression) > _LONGEST:
        raise wrong
    names: dict[str, None] = {}
    rest = _PART.sub("", expression)
    if rest.strip(","):  # unbalanced brackets
        raise wrong
    for part in _PART.findall(expression):
        if part.count("[") > _BRACKETS_MOST or len(_BRACKET.sub("", part)) > _NAME_LONGEST:
            raise wrong
        if _BROKEN_BRACKET.search(part):
            raise wrong
        if sum(int(high) - int(low) for low, high in _RANGE.findall(part)) > NODES_MOST:
            raise too_many
        try:
            names.update(dict.fromkeys(hostlist.expand_hostlist(part)))
        except (hostlist.BadHostlist, ValueError):
            raise wrong from None
        if len(names) > NODES_MOST:
            raise too_many
    return tuple(names)
