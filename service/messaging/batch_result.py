"""Result of a batch: one outcome for each event, in order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from service.contracts.event import JobCompletion
from service.dead_letters.records import DeadLetter

OutcomeKind = Literal["accepted", "duplicate", "conflict"]


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """Result of one event. `conflict`: its id is stored with other content, which is kept.

    `failure_id` is the failure it belongs to, None for jobs that did not fail; `verdict` is verdict/1 if this batch
    diagnosed it.
    """

    kind: OutcomeKind
    event_id: str
    failure_id: int | None = None
    verdict: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """Results of a committed batch, in the order of its events, and the ids of its dead letters."""

    events: tuple[EventOutcome, ...]
    dead_letters: tuple[int, ...] = ()


class BatchHandler(Protocol):
    """Stores batches from any source; returns after the commit."""

    def __call__(self, events: Sequence[JobCompletion], dead: Sequence[DeadLetter] = ()) -> BatchOutcome:
        """Diagnose and store a batch in one transaction.

        Raises:
            Unavailable: the database does not answer; nothing was stored, and the same batch may be passed again.
        """
        ...
