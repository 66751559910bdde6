"""Expressions that match more than others and are searched faster.

An automaton of RE2 has a state for each count that a bound such as `{0,80}` may have reached, for each place where the
bounded part may have begun. On new texts it builds such states all the time. Without the upper bound there are few.
"""

import re
from typing import Final

# Smaller bounds have few states (measured: opening those as well saves nothing, and more lines are tried twice).
_FEW: Final = 8
# Escapes and classes of characters are matched to be left alone: a brace in them is no bound.
_PART: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?P<least>\d+),(?P<most>\d+)\}", re.DOTALL)


def without_upper_bounds(pattern: str) -> str:
    """An expression without look-around that matches wherever this one does, and in more places."""
    return pattern if r"\Q" in pattern else _PART.sub(_opened, pattern)


def least_opened_bound(pattern: str) -> int | None:
    """The smallest upper bound that `without_upper_bounds` opens, None where it opens none.

    A text that is no longer, in bytes, reaches no opened bound: both expressions match the same of it.
    """
    if r"\Q" in pattern:
        return None
    bounds = (part["most"] for part in _PART.finditer(pattern))
    return min((int(most) for most in bounds if most is not None and int(most) > _FEW), default=None)


def _opened(part: re.Match[str]) -> str:
    least, most = part["least"], part["most"]
    return part[0] if most is None or int(most) <= _FEW else f"{{{least},}}"
