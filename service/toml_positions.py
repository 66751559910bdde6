"""The line number of a key in a TOML text, which the standard library's parser does not report."""

import tomllib
from collections.abc import Sequence
from typing import Any

Path = Sequence[str | int]


def _depth(data: Any, path: Path) -> int:
    """How many steps of the path exist in the data."""
    for done, step in enumerate(path):
        listed = isinstance(data, list) and isinstance(step, int) and step < len(data)
        if not listed and not (isinstance(data, dict) and step in data):
            return done
        data = data[step]
    return len(path)


def line_of(text: str, path: Path) -> int | None:
    """The line (1-based) of the statement that defines `path` in a valid TOML text.

    If the path does not exist (a required key is missing), the line of its nearest existing ancestor; None if that is
    the whole text. The text is parsed line by line: the first prefix in which the path exists ends with the statement.
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
            continue  # inside a statement of several lines
        if _depth(data, path[:wanted]) == wanted:
            return begins + 1
        begins = count
    return None
