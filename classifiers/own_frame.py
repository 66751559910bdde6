"""The frame of a traceback that lies in the job's own code, rather than in a library."""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.contracts import Evidence, LogStream

# Limits of what is read (judgement): a traceback is far shorter.
_LINES: Final = 200
_CHARACTERS: Final = 40_000
_NEAR: Final = 1_200  # characters that are read first: most tracebacks are shorter
_FRAME: Final = re.compile(r'\bFile "(?P<path>[^"\n]{1,400})", line (?P<line>\d{1,7})')
_TRACEBACK: Final = "Traceback (most recent call last)"
# Folders of installed packages and of the interpreter: site and dist packages, the standard library, conda.
_LIBRARY: Final = re.compile(
    r"(?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python\d|[/\\]runpy\.py$|^<|[/\\](?:mini|ana)?conda\d?[/\\]"
    r"|^/usr/(?:lib|share)/|^/opt/(?:pytorch|conda|nvidia)/"
)


def is_of_library(path: str) -> bool:
    """Whether a file of a frame belongs to an installed package or the interpreter, not to the job's own code."""
    return _LIBRARY.search(path) is not None


def own_frame(streams: Sequence[LogStream], evidence: Sequence[Evidence]) -> str | None:
    """Return the innermost frame of the job's own code above the line where the failure began, as `train.py:88`.

    Args:
        streams: the logs of the job.
        evidence: the lines of the verdict; the first initiating line of a log is looked up.

    Returns:
        The file's name and the line, None where no traceback with a frame outside of libraries precedes the line.
    """
    first = next((line for line in evidence if line.role == "initiating"), None)
    if first is None or first.stream in {"node", "scheduler"} or not first.text.strip():
        return None
    for stream in streams:
        if (stream.node, stream.stream) != (first.node, first.stream) or first.rank not in {None, stream.rank}:
            continue
        end = stream.text.rfind(first.text.strip()[:200])
        if end >= 0 and (found := _innermost_before(stream.text, end)) is not None:
            return found
    return None


def _innermost_before(text: str, end: int) -> str | None:
    """The last frame outside of libraries of the traceback that ends at a place."""
    near = text.find("\n", max(0, end - _NEAR), end) + 1  # at the beginning of a line
    found = _innermost(text[near:end]) if near and end > _NEAR else None
    return _innermost(text[max(0, end - _CHARACTERS) : end]) if found is None else found


def _innermost(text: str) -> str | None:
    """The last frame outside of libraries of the traceback at the end of a text."""
    for line in reversed(text.splitlines()[-_LINES:]):
        frame = _FRAME.search(line)
        if frame is not None and not is_of_library(frame["path"]):
            name = frame["path"].replace("\\", "/").rpartition("/")[2]
            return f"{name}:{frame['line']}"
        if _TRACEBACK in line:
            return None
    return None
