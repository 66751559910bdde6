"""Times in URLs: RFC 3339 with zone, a day in the service's zone, or a span before now."""

import re
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, WithJsonSchema

from service.errors import FieldError, InvalidInput

EXPECTED = (
    'a time with zone such as "2026-11-20T03:41:57Z", a day such as "2026-11-20", '
    'or a span before now such as "24h" or "7d"'
)
_SPAN = re.compile(r"(?P<count>[0-9]{1,4})(?P<unit>[hdw])", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
_ANY_ZONE = ZoneInfo("UTC")


def instant(text: str, field: str, now: datetime, zone: ZoneInfo) -> datetime:
    """The time that `text` denotes, in UTC.

    Raises:
        InvalidInput: `text` is not a time; the error names `field`.
    """
    found = _read(text.strip().replace(" ", "+") if "T" in text else text.strip(), now, zone)
    if found is None:
        raise InvalidInput(f"{field}: expected {EXPECTED}", (FieldError(field, EXPECTED, repr(text[:60])),))
    return found


def _read(text: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    span = _SPAN.fullmatch(text)
    try:
        if span is not None:
            return max(now - int(span["count"]) * _UNITS[span["unit"]], _EARLIEST)
        if _DAY.fullmatch(text):
            return datetime.combine(datetime.fromisoformat(text).date(), time(), zone).astimezone(UTC)
        if _INSTANT.fullmatch(text):
            if text[17:19] == "60":  # RFC 3339 allows leap seconds, datetime does not
                text = f"{text[:17]}59{text[19:]}"
            return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return None


def _check_time(value: Any) -> Any:
    if _read(value, datetime(2026, 1, 1, tzinfo=UTC), _ANY_ZONE) is None:
        raise ValueError(EXPECTED)
    return value


# A query parameter; `instant` resolves it.
When = Annotated[
    str,
    AfterValidator(_check_time),
    WithJsonSchema(
        {
            "type": "string",
            "description": EXPECTED,
            "anyOf": [
                {"format": "date-time"},
                {"format": "date"},
                {"pattern": "^[0-9]{1,4}[hdw]$"},
            ],
        }
    ),
]
