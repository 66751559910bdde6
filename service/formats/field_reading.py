"""Reading typed fields out of foreign JSON; each complaint names the field and what was expected there."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from service.contracts.event import JobCompletion, from_object, shortened
from service.errors import FieldError, UnreadableRecord

# Go's and Kubernetes' nanoseconds; datetime holds six digits.
_FRACTION = re.compile(r"(\.\d{6})\d+")


def unreadable(field: str, expected: str, got: Any = None) -> UnreadableRecord:
    """The error for one wrong place."""
    shown = None if got is None else shortened(got)
    return UnreadableRecord(f"{field}: {expected}", (FieldError(field, expected, shown),))


def text(obj: Mapping[str, Any], key: str, within: str = "") -> str | None:
    """A string; None where it is absent, null or blank."""
    value = obj.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise unreadable(f"{within}{key}", "a string", value)
    return value


def whole(obj: Mapping[str, Any], key: str, within: str = "", *, least: int = 0) -> int | None:
    """An integer ≥ `least`; None where it is absent or null."""
    value = obj.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 2**53:
        raise unreadable(f"{within}{key}", f"an integer ≥ {least}", value)
    return value


def mapping(obj: Mapping[str, Any], key: str, within: str = "") -> Mapping[str, Any]:
    """An object; empty where it is absent or null."""
    value = obj.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise unreadable(f"{within}{key}", "an object", value)
    return value


def mappings(obj: Mapping[str, Any], key: str, within: str = "") -> list[Mapping[str, Any]]:
    """A list of objects; empty where it is absent or null."""
    value = obj.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise unreadable(f"{within}{key}", "a list of objects", value)
    return value


def texts(obj: Mapping[str, Any], key: str, within: str = "") -> dict[str, str]:
    """An object whose values are strings, as labels are."""
    value = mapping(obj, key, within)
    for name, item in value.items():
        if not isinstance(item, str):
            raise unreadable(f"{within}{key}.{name}", "a string", item)
    return dict(value)


def instant(obj: Mapping[str, Any], key: str, within: str = "") -> datetime | None:
    """A time as ISO 8601 text, UTC where it names no zone; None where it is absent or null."""
    value = text(obj, key, within)
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(_FRACTION.sub(r"\1", value))
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise unreadable(f"{within}{key}", 'a time such as "2026-11-20T03:41:57Z"', value) from None


def epoch(value: float, field: str) -> datetime:
    """Seconds since 1970."""
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        raise unreadable(field, "a time since 1970", value) from None


def cluster_name(named: str | None, given: str | None) -> str:
    """The record's own name of its cluster, else the one given with the topic or request."""
    name = named or given
    if name is None:
        raise unreadable("cluster", "the cluster's name, in the record or given with its topic (topic=cluster)")
    return name


def build(values: Mapping[str, Any]) -> JobCompletion:
    """The event of an adapter's values, checked like any native one."""
    return from_object({key: value for key, value in values.items() if value is not None})
