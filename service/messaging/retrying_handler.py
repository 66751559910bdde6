"""Stores a batch: waits for the database, and isolates an event that can't be handled."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from service.dead_letters.records import DeadLetter
from service.errors import ConfigurationError, Unavailable, UnreadableRecord
from service.messaging.batching import BatchItem
from service.messaging.dead_letters import dead_letter

log = logging.getLogger(__name__)

# Stores events and dead letters, or raises; returns after the commit.
StoreBatch = Callable[[Sequence[Any], Sequence[DeadLetter]], object]


class RetryingHandler:
    """Retries until each item is stored, as an event or as a dead letter.

    Args:
        handle: stores a batch or raises.
        wait: called if the database does not answer, with the error and the number of failures in a row; returns when
            to retry, or raises to give up.
        keep: whether an item is still needed; called before each try (its partition may be revoked while waiting).
    """

    def __init__(
        self,
        handle: StoreBatch,
        wait: Callable[[Unavailable, int], None],
        keep: Callable[[BatchItem], bool] | None = None,
    ) -> None:
        self._handle = handle
        self._wait = wait
        self._keep = keep or _always

    def store_items(self, items: Sequence[BatchItem]) -> list[BatchItem]:
        """Store all items; return those that could not be handled, as dead letters.

        A batch with an unexpected error is retried once, then halved until the failing event is found.
        """
        pieces = deque([list(items)])
        logged: set[str] = set()
        rejected: list[BatchItem] = []
        first = True
        while pieces:
            piece = [item for item in pieces.popleft() if self._keep(item)]
            if not piece:
                continue
            error = self._try(piece)
            if error is not None and (first or len(piece) == 1):
                log.info("a batch of %d failed, trying once more: %s", len(piece), type(error).__name__)
                error = self._try(piece)
            first = False
            if error is None:
                continue
            if len(piece) > 1:
                middle = len(piece) // 2
                pieces.extendleft([piece[middle:], piece[:middle]])
            else:
                kind = f"{type(error).__name__} {error}"[:200]
                # Log the trace once a batch: if the service is broken, every event raises it.
                log.error("%s cannot be processed", piece[0].place, exc_info=None if kind in logged else error)
                logged.add(kind)
                rejected.append(self._dead_letter(piece[0], error))
        return rejected

    def _try(self, piece: Sequence[BatchItem]) -> Exception | None:
        """Store the piece, waiting for the database if necessary; return any other error."""
        times = 0
        while True:
            wanted = [item for item in piece if self._keep(item)]
            try:
                if wanted:
                    self._handle(
                        [item.content for item in wanted if not isinstance(item.content, DeadLetter)],
                        [item.content for item in wanted if isinstance(item.content, DeadLetter)],
                    )
            except Unavailable as error:
                times += 1
                self._wait(error, times)
            except ConfigurationError:
                raise
            except Exception as error:  # noqa: BLE001 - the failing event is found by halving
                return error
            else:
                return None

    def _dead_letter(self, item: BatchItem, error: Exception) -> BatchItem:
        """Store a dead letter instead of the event; without its text if that can't be stored either."""
        reason = UnreadableRecord(f"could not be handled: {type(error).__name__}")
        letter = dead_letter(item.value, item.place, reason)
        for candidate in (letter, DeadLetter(text="", sha256=letter.sha256, place=letter.place, reason=letter.reason)):
            replacement = BatchItem(candidate, item.value, item.place, item.record)
            failed = self._try([replacement])
            if failed is None:
                return replacement
        raise failed if failed is not None else error


def _always(item: BatchItem) -> bool:
    del item
    return True
