"""Records of dead letters: plain frozen dataclasses, no SQL. Times are aware and in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be read, to be stored. `text` is redacted; `sha256` is of the raw bytes, hex.

    `place` is its origin: "topic/partition/offset", "POST /api/v1/events line 3", "replay file:12".
    """

    text: str
    sha256: str
    place: str
    reason: str
    errors: tuple[Mapping[str, Any], ...] = ()
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StoredDeadLetter:
    """A dead letter as stored."""

    id: int
    at: datetime
    place: str
    reason: str
    errors: tuple[Mapping[str, Any], ...]
    text: str
    sha256: str
    resent_at: datetime | None
