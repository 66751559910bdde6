"""Random texts that match a regular expression, for the expressions in the data files of secrets."""

import random
import re
from collections.abc import Sequence

# The parser of the standard library has no public name.
from re import _constants, _parser
from typing import Any

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
_CATEGORIES = {
    _constants.CATEGORY_DIGIT: DIGITS,
    _constants.CATEGORY_WORD: LETTERS + DIGITS + "_",
    _constants.CATEGORY_SPACE: " ",
    _constants.CATEGORY_NOT_SPACE: LETTERS + DIGITS,
}


def reads_without_limit(pattern: str) -> bool:
    """Whether any part of an expression, also of one that only looks ahead, may repeat without limit."""
    return _repeats(_parser.parse(pattern))


def _repeats(tree: Any) -> bool:
    if isinstance(tree, tuple) and len(tree) == 2 and tree[0] in _REPEATS and tree[1][1] == _constants.MAXREPEAT:
        return True
    return isinstance(tree, tuple | list | _parser.SubPattern) and any(_repeats(one) for one in tree)


def sample(pattern: str, chance: random.Random) -> tuple[str, dict[str, str]]:
    """A text that matches, and the parts in named groups."""
    tree = _parser.parse(pattern)
    names = {number: name for name, number in tree.state.groupdict.items()}
    groups: dict[str, str] = {}
    return _text(tree, chance, names, groups), groups


def _text(tree: Sequence[Any], chance: random.Random, names: dict[int, str], groups: dict[str, str]) -> str:
    out = ""
    for kind, given in tree:
        if kind is _constants.LITERAL:
            out += chr(given)
        elif kind is _constants.IN:
            out += chance.choice(_letters(given))
        elif kind in (_constants.ANY, _constants.NOT_LITERAL):
            out += "7"
        elif kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            least, most, inner = given
            count = least if kind is _constants.MIN_REPEAT else chance.randint(least, min(most, max(least, 1) + 6))
            out += "".join(_text(inner, chance, names, groups) for _ in range(count))
        elif kind is _constants.SUBPATTERN:
            number, _, _, inner = given
            part = _text(inner, chance, names, groups)
            if number in names:
                groups[names[number]] = part
            out += part
        elif kind is _constants.BRANCH:
            out += _text(chance.choice(given[1]), chance, names, groups)
        else:
            assert kind in (_constants.AT, _constants.ASSERT, _constants.ASSERT_NOT), kind
    return out


def _letters(given: Sequence[Any]) -> str:
    found = ""
    for kind, value in given:
        if kind is _constants.LITERAL:
            found += chr(value)
        elif kind is _constants.RANGE:
            found += "".join(map(chr, range(value[0], value[1] + 1)))
        elif kind is _constants.CATEGORY:
            found += _CATEGORIES[value]
    if given[0][0] is _constants.NEGATE:
        return "".join(one for one in LETTERS + DIGITS if one not in found)
    return found


def without_lookarounds(pattern: str) -> str:
    """The pattern without what it demands of the text around it."""
    return re.sub(r"\(\?(?:<?[=!])(?:\[[^\]]*\]|\\.|[^()\[\]]|\((?:\[[^\]]*\]|[^()\[\]])*\))*\)", "", pattern)
