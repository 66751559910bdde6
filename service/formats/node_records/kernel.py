"""Kernel lines: journald's JSON export, syslog's, and plain lines as syslog or `dmesg -T` prints them.

A plain line names its node only in syslog format; otherwise the sender gives the node in an envelope or a native event.
Times without a zone are UTC. RFC 3164 times have no year, so RFC 5424 or JSON is required.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from service.formats import field_reading
from service.formats.node_records.kinds import of_text
from service.times import instant_of

# RFC 5424: <PRI>1 TIME HOST APP PROCID MSGID [SD] MSG, and rsyslog's file format TIME HOST TAG: MSG.
_RFC5424 = re.compile(
    r"(?:<\d{1,3}>1 )(?P<at>\S{10,40}) (?P<node>\S{1,200}) (?P<app>\S{1,48}) \S{1,128} \S{1,32} "
    r"(?:-|\[.{0,2000}?\]) ?(?P<text>.*)",
    re.DOTALL,
)
_PLAIN = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,20}) (?P<node>\S{1,200}) "
    r"(?P<app>[^\s:\[]{1,48})(?:\[\d{1,10}\])?: (?P<text>.*)",
    re.DOTALL,
)
_MICROSECONDS = 1_000_000


def is_it(obj: Mapping[str, Any]) -> bool:
    """Return whether the object is a record of journald or syslog."""
    return "MESSAGE" in obj or ("message" in obj and ("host" in obj or "hostname" in obj) and "node" not in obj)


def read(obj: Mapping[str, Any], cluster: str | None) -> list[Mapping[str, Any]]:
    """Return the native node events.

    Raises:
        UnreadableRecord: a field is wrong; the error names it.
    """
    if "MESSAGE" in obj:
        message = obj["MESSAGE"]
        if isinstance(message, list):  # journald writes non-text bytes as a list of numbers
            if not all(isinstance(one, int) and 0 <= one < 256 for one in message):  # noqa: PLR2004 - a byte
                raise field_reading.unreadable("MESSAGE", "a string, or a list of bytes", message)
            message = bytes(message).decode("utf-8", "replace")
        if not isinstance(message, str):
            raise field_reading.unreadable("MESSAGE", "a string, or a list of bytes", message)
        source = field_reading.text(obj, "SYSLOG_IDENTIFIER") or field_reading.text(obj, "_TRANSPORT")
        return [
            {
                "cluster": field_reading.text(obj, "cluster") or cluster,
                "node": field_reading.text(obj, "_HOSTNAME"),
                "id": field_reading.text(obj, "__CURSOR"),
                "at": _micro(obj, "_SOURCE_REALTIME_TIMESTAMP") or _micro(obj, "__REALTIME_TIMESTAMP"),
                "source": source or "journal",
                "text": message,
                "kind": of_text(message),
            }
        ]
    message = field_reading.text(obj, "message") or ""
    return [
        {
            "cluster": field_reading.text(obj, "cluster") or cluster,
            "node": field_reading.text(obj, "host") or field_reading.text(obj, "hostname"),
            "id": field_reading.text(obj, "id"),
            "at": _with_zone(obj.get("at") or obj.get("@timestamp") or obj.get("timestamp") or obj.get("time")),
            "source": field_reading.text(obj, "program") or field_reading.text(obj, "source") or "syslog",
            "text": message,
            "kind": of_text(message),
            "gpu": field_reading.whole(obj, "gpu"),
        }
    ]


def line(text: str, cluster: str | None) -> Mapping[str, Any]:
    """Return the native event of a plain line.

    Raises:
        UnreadableRecord: the line has no node or no time.
    """
    hit = _RFC5424.match(text) or _PLAIN.match(text)
    if hit is None:
        raise field_reading.unreadable(
            "(whole record)",
            "JSON, or a syslog line with time and host (RFC 5424, or 2026-11-20T03:41:52Z host kernel: text)",
            text,
        )
    return {
        "cluster": cluster,
        "node": hit["node"],
        "at": _with_zone(hit["at"]),
        "source": hit["app"],
        "text": hit["text"],
        "kind": of_text(hit["text"]),
    }


def _with_zone(at: Any) -> Any:
    """Return a time without a zone as one in UTC; anything else as it is."""
    known = instant_of(at)
    return at if known is None else known


def _micro(obj: Mapping[str, Any], name: str) -> str | None:
    """Return a time as ISO 8601 text from journald's microseconds since 1970, which it writes as text."""
    value = obj.get(name)
    if value is None:
        return None
    if (
        not isinstance(value, str | int)
        or isinstance(value, bool)
        or not str(value).isascii()
        or not str(value).isdigit()
    ):
        raise field_reading.unreadable(name, "microseconds since 1970", value)
    if len(str(value)) > 18:  # noqa: PLR2004 - longer numbers are out of range
        raise field_reading.unreadable(name, "microseconds since 1970", value)
    try:
        return datetime.fromtimestamp(int(value) / _MICROSECONDS, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        raise field_reading.unreadable(name, "microseconds since 1970", value) from None
