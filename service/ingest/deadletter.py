"""What can't be read or handled: for the table redacted text, digest, place and reason; for the topic the raw bytes."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Protocol

from classifiers.redaction import redact
from service.errors import FaultlineError, UnreadableRecord
from service.kafka.record import Message, Record
from service.store.records import DeadLetter

TEXT_CHARACTERS = 64 * 1024
# A secret that begins before the cut ends within this many characters, so that redaction sees all of it.
_MARGIN = 16 * 1024
# What a broker takes by default, less room for headers; a larger value stays where it was, its place is told.
TOPIC_BYTES = 900_000
_HEADER_CHARACTERS = 2_000


class TooManyDeadLetters(FaultlineError):
    """So many unreadable records in a row that the topic or its format must be wrong: the consumer stops."""

    title = "Too many dead letters in a row"


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that can't be handled, and its letter for the table."""

    record: Record
    letter: DeadLetter


class DeadLetterTopic(Protocol):
    """Where rejected records go besides the table."""

    def send(self, rejected: Sequence[Rejected]) -> None:
        """Put them on the topic; returns when the broker has them.

        Raises:
            Unavailable: it has not got them all; send them again.
            ConfigurationError: it never will.
        """
        ...


def dead_letter(value: bytes | None, place: str, error: UnreadableRecord, at: datetime | None = None) -> DeadLetter:
    """The letter for the table. `place`: "topic/partition/offset", "POST /api/v1/events line 3", "replay file:12"."""
    raw = value or b""
    return DeadLetter(
        text=readable(raw),
        sha256=hashlib.sha256(raw).hexdigest(),
        place=_clean(place),
        reason=_clean(redact(error.reason))[:_HEADER_CHARACTERS],
        errors=tuple(
            {name: text if text is None else _clean(redact(text)) for name, text in asdict(problem).items()}
            for problem in error.errors
        ),
        at=at,
    )


def reject(record: Record, error: UnreadableRecord, at: datetime | None = None) -> Rejected:
    """A record from a topic with its letter."""
    return Rejected(record, dead_letter(record.value, record.place, error, at))


def readable(raw: bytes) -> str:
    """The beginning of raw bytes as text that any database takes, without secrets."""
    text = _clean(raw[: 4 * (TEXT_CHARACTERS + _MARGIN)].decode("utf-8", "replace"))
    if len(text) <= TEXT_CHARACTERS:
        return redact(text)
    redacted = redact(text[: TEXT_CHARACTERS + _MARGIN])
    return redacted[: max(0, min(TEXT_CHARACTERS, len(redacted) - _MARGIN))] + "…"


def message(rejected: Rejected) -> Message:
    """The record as it goes to the dead-letter topic: its own bytes, key and headers, and why it is there.

    Headers with the prefix `faultline-` tell reason, place and digest; `faultline-cut` says that the value was too
    large to come along and still lies at its place.
    """
    record, letter = rejected.record, rejected.letter
    told = {"reason": letter.reason, "place": letter.place, "sha256": letter.sha256, "cluster": record.cluster}
    value = record.value
    if record.size > TOPIC_BYTES:
        told["cut"] = f"first {TOPIC_BYTES} of {record.size} bytes"
        value = (value or b"")[:TOPIC_BYTES]
    own = [(name, content) for name, content in record.headers if not name.startswith("faultline-")]
    if sum(len(name) + len(content or b"") for name, content in own) > TOPIC_BYTES // 10:
        own, told["headers"] = [], f"{len(record.headers)} headers were too large to come along"
    return Message(
        value=value,
        key=record.key if record.key is None or len(record.key) <= _HEADER_CHARACTERS else None,
        headers=[*own, *((f"faultline-{name}", text.encode()) for name, text in told.items())],
    )


def _clean(text: str) -> str:
    return text.replace("\x00", "\ufffd")
