"""Records of second readings."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

# asked: no answer yet, or the process ended; invalid: the answer did not follow the schema.
Status = Literal["asked", "answered", "undecided", "invalid"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A failure to ask about, with its kind."""

    failure_id: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class RecentVerdict:
    """A version of a failure's verdict; `body` is verdict/1."""

    failure_id: int
    at: datetime
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SecondReading:
    """The answer for one kind of failure. `side` and `cause` are None unless `status` is "answered"."""

    fingerprint: str
    failure_id: int
    asked_at: datetime
    status: Status
    model: str | None = None
    side: str | None = None
    cause: str | None = None
    confidence: float | None = None
    reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
