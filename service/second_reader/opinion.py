"""The protocol of a second reader, and its answer, checked against the schema: an opinion, or why it is none."""

import math
from dataclasses import dataclass
from typing import Any, Final, Protocol

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from classifiers import taxonomy
from classifiers.redaction import redact
from service.formatting import one_line
from service.second_reader.question import MOST_CITED, REASON_LENGTH, UNDECIDED, Question

_MOST_BYTES: Final = 20_000


class InvalidAnswer(Exception):
    """The answer does not follow the schema; the message says where."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a second reader makes of a failure: side and cause are None where it is undecided.

    `lines` are the numbers of the lines that show it, `reason` is redacted text of one line.
    """

    side: str | None
    cause: str | None
    confidence: float
    lines: tuple[int, ...]
    reason: str


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    side: str
    cause: str | None
    confidence: float = Field(ge=0, le=1)
    lines: list[int] = Field(max_length=MOST_CITED)
    reason: str = Field(max_length=REASON_LENGTH)


def parse(content: str | bytes, question: Question) -> Opinion:
    """The opinion in the text of an answer.

    Raises:
        InvalidAnswer: the text is not JSON, not as the schema says, or it cites lines that the question does not have.
    """
    raw = content.encode("utf-8", "replace") if isinstance(content, str) else content
    if len(raw) > _MOST_BYTES:
        raise InvalidAnswer("the answer is too long")
    try:
        decoded = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidAnswer("the answer is not JSON") from error
    return from_object(decoded, question)


def from_object(decoded: Any, question: Question) -> Opinion:
    """The opinion in a decoded answer.

    Raises:
        InvalidAnswer: see `parse`.
    """
    try:
        body = _Body.model_validate(decoded)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidAnswer(f"{'.'.join(map(str, first['loc'])) or 'answer'}: {first['msg']}") from None
    if not math.isfinite(body.confidence) or any(not 1 <= number <= question.lines for number in body.lines):
        raise InvalidAnswer("lines: numbers of lines of the question expected")
    reason = redact(one_line(body.reason))
    if body.side == UNDECIDED:
        if body.cause is not None:
            raise InvalidAnswer("cause: null expected where undecided")
        return Opinion(None, None, body.confidence, tuple(body.lines), reason)
    axes = taxonomy.load()
    if body.cause is None or body.cause not in axes.causes or axes.side_of(body.cause) != body.side:
        raise InvalidAnswer("cause: a cause of the side expected")
    if question.lines and not body.lines:
        raise InvalidAnswer("lines: an opinion needs a line that shows it")
    return Opinion(body.side, body.cause, body.confidence, tuple(body.lines), reason)


class NoReply(Exception):
    """The reader did not answer: not reachable, too slow, or an error status. Asking again later may help."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `opinion` is None where it does not follow the schema; `problem` then says why.

    Tokens are those that the reader reports, 0 if it reports none.
    """

    opinion: Opinion | None
    model: str
    problem: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0


class SecondReader(Protocol):
    """Reads one failure."""

    def ask(self, question: Question) -> Reply:
        """Answer a question.

        Raises:
            NoReply: there is no answer.
        """
        ...
