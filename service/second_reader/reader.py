"""The protocol of a second reader."""

from dataclasses import dataclass
from typing import Protocol

from service.second_reader.opinion import Opinion
from service.second_reader.question import Question


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
