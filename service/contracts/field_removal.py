"""Removes wrong fields from decoded JSON, so that the rest of it can be read."""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError

Path = Sequence[str | int]


def without(data: Any, paths: Iterable[Path]) -> Any:
    """A copy of `data` without the values at `paths`; only changed containers are copied.

    Of a path that leads nowhere, the deepest existing part is removed.
    """
    wrong: dict[str | int, list[Path]] = {}
    for path in paths:
        if path and _has(data, path[0]):
            wrong.setdefault(path[0], []).append(path[1:])
    remaining: Any = dict(data) if isinstance(data, dict) else list(data) if isinstance(data, list) else data
    # From the end, so that the indices of a list stay right.
    for key in sorted(wrong, key=lambda one: one if isinstance(one, int) else 0, reverse=True):
        inner = remaining[key]
        if all(rest and _has(inner, rest[0]) for rest in wrong[key]):
            remaining[key] = without(inner, wrong[key])
        else:
            del remaining[key]
    return remaining


def _has(data: Any, key: str | int) -> bool:
    if isinstance(data, dict):
        return key in data
    return isinstance(data, list) and isinstance(key, int) and key < len(data)


def without_frames(error: ValidationError) -> ValidationError:
    """Remove the tracebacks of the errors that validators raised.

    The garbage collector can't look into errors of pydantic. Where a frame keeps such an error, these tracebacks would
    keep the frame, and with it a batch of records, for as long as the process runs.
    """
    places_of(error)
    return error


def places_of(error: ValidationError) -> Sequence[Any]:
    """The errors without what was given, and without the tracebacks of those that validators raised."""
    found = error.errors(include_url=False, include_input=False)
    for problem in found:
        raised = problem.get("ctx", {}).get("error")
        if isinstance(raised, Exception):
            raised.__traceback__ = raised.__context__ = raised.__cause__ = None
    return found
