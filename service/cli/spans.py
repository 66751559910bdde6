"""Spans of time on the command line."""

import argparse
import re
from datetime import timedelta

_LONGEST = timedelta(days=36_500)  # a hundred years: times before the year 1 do not exist
_SPAN = re.compile(r"([0-9]{1,6})([dh])", re.ASCII)


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
