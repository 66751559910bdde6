"""On which line of a TOML text a key stands; the standard library's reader does not tell."""

import tomllib
from collections.abc import Sequence
from typing import Any

Path = Sequence[str | int]


def _depth(data: Any, path: Path) -> int:
    """How many steps of the path lead somewhere in the data."""
    for done, step in enumerate(path):
        listed = isinstance(data, list) and isinstance(step, int) and step < len(data)
        if not listed and not (isinstance(data, dict) and step in data):
            return done
        data = data[step]
    return len(path)


def line_of(text: str, path: Path) -> int | None:
    """The line (1-based) on which the statement that brings `path` into a sound TOML text begins.

    Where the path does not exist (a required key is missing), that of its nearest ancestor that does; None where that
    is the whole text. The text is read again line by line with the reader itself: the first beginning of it in which
    the path exists ends with the statement looked for.
    """
    wanted = _depth(tomllib.loads(text), path)
    if wanted == 0:
        return None
    lines = text.splitlines(keepends=True)
    begins = 0
    for count in range(1, len(lines) + 1):
        try:
            data = tomllib.loads("".join(lines[:count]))
        except tomllib.TOMLDecodeError:
            continue  # within a statement of several lines
        if _depth(data, path[:wanted]) == wanted:
            return begins + 1
        begins = count
    return None
