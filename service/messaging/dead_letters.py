"""Dead letters: redacted text, digest, location and reason for the table; the raw bytes for the topic; their limit."""

import hashlib
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Protocol

from classifiers.redaction import redact
from service.dead_letters.records import DeadLetter
from service.errors import ConfigurationError, FaultlineError, TooLarge, UnreadableRecord
from service.messaging.batching import BatchItem
from service.messaging.record import Message, MessageProducer, Record

TEXT_CHARACTERS = 64 * 1024
# Margin behind the cut, so that redaction sees the whole of a secret that begins before it.
_MARGIN = 16 * 1024
# Accepted by brokers by default, minus headers; and accepted by any broker.
COMMON_BYTES = 900_000
CUT_BYTES = 16 * 1024
_HEADER_CHARACTERS = 2_000  # of the reason and of each text of an error, which may quote the record
_ERRORS_MOST = 20


class TooManyDeadLetters(FaultlineError):
    """Too many dead letters: probably the topic, format or service is wrong, so the consumer stops."""

    title = "Too many dead letters"


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that can't be handled, with its dead letter for the table."""

    record: Record
    letter: DeadLetter


class DeadLetterTopic(Protocol):
    """The topic for rejected records."""

    def send(self, rejected: Sequence[Rejected]) -> None:
        """Send the records; returns when the broker has them.

        Raises:
            Unavailable: not all arrived; send them again.
            ConfigurationError: the broker refuses permanently.
        """
        ...


def dead_letter(value: bytes | None, place: str, error: UnreadableRecord, at: datetime | None = None) -> DeadLetter:
    """Return the dead letter for the table; `place` is such as "topic/partition/offset" or "replay file:12"."""
    raw = value or b""
    return DeadLetter(
        text=readable(raw),
        sha256=hashlib.sha256(raw).hexdigest(),
        place=_clean(place),
        reason=_beginning(_clean(error.reason), _HEADER_CHARACTERS),
        errors=tuple(
            {
                name: text if text is None else _beginning(_clean(text), _HEADER_CHARACTERS)
                for name, text in asdict(problem).items()
            }
            for problem in error.errors[:_ERRORS_MOST]
        ),
        at=at,
    )


def readable(raw: bytes) -> str:
    """Return the beginning of raw bytes as redacted text that any database accepts."""
    beginning = raw[: 4 * (TEXT_CHARACTERS + _MARGIN)]
    # UTF-16 and UTF-32 are recognised as JSON is (RFC 4627, section 3): a null between letters would hide a secret.
    return _beginning(_clean(beginning.decode(json.detect_encoding(beginning), "replace")), TEXT_CHARACTERS)


def _beginning(text: str, most: int) -> str:
    """The first `most` characters of a text, redacted. No more is read than that and a secret at the cut need."""
    if len(text) <= most + _MARGIN:
        redacted, end = redact(text), most
    else:
        redacted = redact(text[: most + _MARGIN])
        end = max(0, min(most, len(redacted) - _MARGIN))
    return redacted if len(redacted) <= end else redacted[:end] + "…"


def message(rejected: Rejected, cut: int | None = None) -> Message:
    """Return the message for the dead-letter topic: the record's bytes, key and headers, and the reason.

    Headers with the prefix `faultline-` hold reason, place and digest. `cut`: if the broker refuses the whole record,
    only this many bytes are sent and `faultline-cut` says so; the record itself stays at its place.
    """
    record, letter = rejected.record, rejected.letter
    headers = {"reason": letter.reason, "place": letter.place, "sha256": letter.sha256, "cluster": record.cluster}
    # A null value without a key must not be sent.
    value, key = record.value or b"", record.key
    own = [(name, content) for name, content in record.headers if not name.startswith("faultline-")]
    if cut is not None:
        headers["cut"] = f"{min(cut, len(value))} of {len(value)} bytes, {len(own)} headers left out"
        value, key, own = value[:cut], None, []
    return Message(value, key, [*own, *((f"faultline-{name}", text.encode()) for name, text in headers.items())])


class DeadLetterSender:
    """Sends dead letters to a broker: large records one by one, cut to the size that the broker accepts."""

    def __init__(self, producer: MessageProducer, topic: str) -> None:
        self._producer = producer
        self._topic = topic

    def send(self, rejected: Sequence[Rejected]) -> None:
        """See `DeadLetterTopic.send`."""
        small = [one for one in rejected if one.record.size <= COMMON_BYTES]
        large = [one for one in rejected if one.record.size > COMMON_BYTES]
        try:
            if small:
                self._producer.send(self._topic, [message(one) for one in small])
        except TooLarge:
            large = [*small, *large]
        for one in large:
            self._send_one(one)

    def _send_one(self, one: Rejected) -> None:
        reason = ""
        for cut in (None, COMMON_BYTES, CUT_BYTES):
            try:
                self._producer.send(self._topic, [message(one, cut)])
            except TooLarge as error:
                reason = error.detail
                continue
            return
        raise ConfigurationError(f"the broker takes no message of {CUT_BYTES} bytes on {self._topic}: {reason}")


def _clean(text: str) -> str:
    return text.replace("\x00", "\ufffd")


# With this many unhandled events among the last ones, the service is broken rather than the events.
MAX_UNHANDLED = 50
UNHANDLED_WINDOW = 500


class DeadLetterLimit:
    """Counts consecutive unreadable records, and unhandled events among the last ones.

    Args:
        limit: number of consecutive unreadable records that is too many. `streak`: the current number.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.streak = 0
        self._handled: deque[bool] = deque(maxlen=UNHANDLED_WINDOW)  # whether each of the last events was handled

    def note(self, records: Sequence[Record], items: Sequence[BatchItem], unprocessable: Sequence[BatchItem]) -> None:
        """Count a committed batch: its records, its items, and the items that could not be handled.

        Raises:
            TooManyDeadLetters: a limit is reached; the message says what to check.
        """
        bad = {item.place: item.content for item in [*items, *unprocessable] if isinstance(item.content, DeadLetter)}
        for record in records:
            letter = bad.get(record.place)
            self.streak = 0 if letter is None else self.streak + 1
            if letter is not None and self.streak >= self.limit:
                raise TooManyDeadLetters(
                    f"{self.streak} records in a row could not be read, the last at {letter.place}: {letter.reason}."
                    " Is the topic right, has its format changed? They are stored as dead letters;"
                    " the following records stay on the topic. (FAULTLINE_DEAD_LETTER_LIMIT)"
                )
        failed = {item.place: item.content for item in unprocessable if isinstance(item.content, DeadLetter)}
        self._handled.extend(item.place not in failed for item in items if not isinstance(item.content, DeadLetter))
        broken = self._handled.count(False)
        if failed and broken >= MAX_UNHANDLED:
            raise TooManyDeadLetters(
                f"{broken} of the last {len(self._handled)} events could be read but not processed:"
                f" {next(reversed(failed.values())).reason}. More likely this service or its model is broken than the"
                " events. They are stored as dead letters; the following records stay on the topic."
            )
