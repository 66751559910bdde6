"""Reads typed fields of external JSON, and records to skip.

Each reader raises `UnreadableRecord` for a wrong value; the error names the field and the expected value. `tolerant`
reads a record whose optional fields may be wrong: these are left out, and the event lists them as problems. Fields that
identify the job or tell how and when it ended are never left out: a record in which one of them is wrong is refused.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from service.contracts.event import (
    LARGEST_COUNT,
    PROBLEMS_MOST,
    JobCompletion,
    described,
    from_object,
    named,
    shortened,
)
from service.contracts.field_removal import without
from service.errors import FieldError, UnreadableRecord
from service.times import instant_of

# Go and Kubernetes write nanoseconds; datetime has six digits.
_FRACTION = re.compile(r"(\.\d{6})\d+")


def unreadable(field: str, expected: str, got: Any = None) -> UnreadableRecord:
    """Return the error for one wrong field."""
    shown = None if got is None else shortened(got)
    name = named(field)
    return UnreadableRecord(f"{name}: expected {expected}", (FieldError(name, expected, shown),))


def text(obj: Mapping[str, Any], key: str, within: str = "") -> str | None:
    """Return a string; None if it is absent, null or blank."""
    value = obj.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise unreadable(f"{within}{key}", "a string", value)
    return value


def whole(obj: Mapping[str, Any], key: str, within: str = "", *, least: int = 0) -> int | None:
    """Return an integer ≥ `least`; None if it is absent or null."""
    value = obj.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= LARGEST_COUNT:
        raise unreadable(f"{within}{key}", f"an integer ≥ {least}", value)
    return value


def mapping(obj: Mapping[str, Any], key: str, within: str = "") -> Mapping[str, Any]:
    """Return an object; empty if it is absent or null."""
    value = obj.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise unreadable(f"{within}{key}", "an object", value)
    return value


def mappings(obj: Mapping[str, Any], key: str, within: str = "") -> list[Mapping[str, Any]]:
    """Return a list of objects; empty if it is absent or null."""
    value = obj.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise unreadable(f"{within}{key}", "a list of objects", value)
    return value


def texts(obj: Mapping[str, Any], key: str, within: str = "") -> dict[str, str]:
    """Return an object whose values are strings, such as labels."""
    value = mapping(obj, key, within)
    for name, item in value.items():
        if not isinstance(item, str):
            raise unreadable(f"{within}{key}.{name}", "a string", item)
    return dict(value)


def instant(obj: Mapping[str, Any], key: str, within: str = "") -> datetime | None:
    """Return a time given as ISO 8601 text, UTC if it has no zone; None if it is absent or null."""
    value = text(obj, key, within)
    if value is None:
        return None
    at = instant_of(_FRACTION.sub(r"\1", value))
    if at is None:
        raise unreadable(f"{within}{key}", 'a time such as "2026-11-20T03:41:57Z"', value)
    return at


def epoch(value: float, field: str) -> datetime:
    """Convert seconds since 1970 to a time."""
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        raise unreadable(field, "a time since 1970", value) from None


def cluster_name(named: str | None, given: str | None) -> str:
    """Return the cluster name in the record, else the name given with the topic or request."""
    name = named or given
    if name is None:
        raise unreadable("cluster", "the cluster's name, in the record or given with its topic (topic=cluster)")
    return name


def build(values: Mapping[str, Any]) -> JobCompletion:
    """Return the event of a format reader's values, validated like a native event."""
    return from_object({key: value for key, value in values.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Skipped:
    """A readable record that is not the end of a job (start, pending, requeue, running); `reason` is for display."""

    reason: str


Read = Callable[[Mapping[str, Any], str | None], JobCompletion | Skipped]


def tolerant(read: Read, optional: frozenset[str]) -> Read:
    """A reader that leaves out wrong fields of `optional` and what is below them.

    Args:
        read: raises UnreadableRecord for a wrong field, with its place in the record.
        optional: fields that may be left out, with dots between levels.
    """

    def reading(record: Mapping[str, Any], cluster: str | None) -> JobCompletion | Skipped:
        try:
            return read(record, cluster)
        except UnreadableRecord as error:
            return _read_without(read, optional, record, cluster, error)

    return reading


def _read_without(
    read: Read, optional: frozenset[str], record: Mapping[str, Any], cluster: str | None, error: UnreadableRecord
) -> JobCompletion | Skipped:
    problems: list[str] = []
    rest = record
    while True:
        fields = [one.field for one in error.errors]
        if not fields or len(problems) > PROBLEMS_MOST or not all(_is_below(field, optional) for field in fields):
            raise error
        problems += [described(one) for one in error.errors]
        smaller = without(rest, [field.split(".") for field in fields])
        if smaller == rest:
            raise error
        rest = smaller
        try:
            found = read(rest, cluster)
        except UnreadableRecord as another:
            error = another
        else:
            return found if isinstance(found, Skipped) else found.with_problems(problems)


def _is_below(field: str, optional: frozenset[str]) -> bool:
    parts = field.split(".")
    return any(".".join(parts[: number + 1]) in optional for number in range(len(parts)))
