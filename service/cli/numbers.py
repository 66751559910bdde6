"""Numbers on the command line."""

import argparse
import math
from collections.abc import Callable


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
