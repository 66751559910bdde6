"""Types of the command line: the parser to which commands add theirs, and arguments: numbers and spans of time."""

import argparse
import math
import re
from collections.abc import Callable
from datetime import timedelta
from typing import TypeAlias

# argparse has only a private name for it, which takes no parameters at run time.
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_LONGEST = timedelta(days=36_500)  # a hundred years: times before the year 1 do not exist
_SPAN = re.compile(r"([0-9]{1,6})([dh])", re.ASCII)


def positive(text: str) -> float:
    """Return a number above 0 that is finite.

    Raises:
        argparse.ArgumentTypeError: the text is none.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text[:40]}")
    return number


def between(least: int, most: int) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number from `least` to `most`."""

    def number(text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            found = least - 1
        if not least <= found <= most:
            raise argparse.ArgumentTypeError(f"expected {least} to {most}, got {text[:40]}")
        return found

    return number


def span(text: str) -> timedelta:
    """Return the days or hours that a text such as `28d` or `36h` names.

    Raises:
        argparse.ArgumentTypeError: it names none.
    """
    found = _SPAN.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected days or hours, such as 28d or 36h, not {text[:40]!r}")
    count = int(found[1])
    wanted = timedelta(days=count) if found[2] == "d" else timedelta(hours=count)
    if wanted > _LONGEST:
        raise argparse.ArgumentTypeError(f"expected at most {_LONGEST.days}d, not {text!r}")
    return wanted
