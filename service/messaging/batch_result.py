"""What became of a batch: one outcome an event, in order; shared by those who hand batches in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from service.contracts.event import JobCompletion
from service.dead_letters.records import DeadLetter

OutcomeKind = Literal["accepted", "duplicate", "conflict"]


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """One event's fate. `conflict`: its id was stored before with other content, which stays.

    `failure_id` is the failure it belongs to, None for jobs that did not fail; `verdict` is verdict/1 where this very
    batch diagnosed it.
    """

    kind: OutcomeKind
    event_id: str
    failure_id: int | None = None
    verdict: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The outcomes of a committed batch, in the order of its events, and the ids of its dead letters."""

    events: tuple[EventOutcome, ...]
    dead_letters: tuple[int, ...] = ()


class BatchHandler(Protocol):
    """The one callable that sources hand batches to; it returns after the commit."""

    def __call__(self, events: Sequence[JobCompletion], dead: Sequence[DeadLetter] = ()) -> BatchOutcome:
        """Diagnose and store a batch in one transaction.

        Raises:
            Unavailable: the database does not answer; nothing was stored, the same batch may be given again.
        """
        ...
