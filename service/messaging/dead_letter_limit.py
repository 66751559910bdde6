"""Stops the consumer when there are too many dead letters."""

from collections import deque
from collections.abc import Sequence

from service.dead_letters.records import DeadLetter
from service.messaging.batching import BatchItem
from service.messaging.dead_letters import TooManyDeadLetters
from service.messaging.record import Record

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
        bad = {item.place: item.what for item in [*items, *unprocessable] if isinstance(item.what, DeadLetter)}
        for record in records:
            letter = bad.get(record.place)
            self.streak = 0 if letter is None else self.streak + 1
            if letter is not None and self.streak >= self.limit:
                raise TooManyDeadLetters(
                    f"{self.streak} records in a row could not be read, the last at {letter.place}: {letter.reason}."
                    " Is the topic right, has its format changed? They are stored as dead letters;"
                    " the following records stay on the topic. (FAULTLINE_DEAD_LETTER_LIMIT)"
                )
        failed = {item.place: item.what for item in unprocessable if isinstance(item.what, DeadLetter)}
        self._handled.extend(item.place not in failed for item in items if not isinstance(item.what, DeadLetter))
        broken = self._handled.count(False)
        if failed and broken >= MAX_UNHANDLED:
            raise TooManyDeadLetters(
                f"{broken} of the last {len(self._handled)} events could be read but not processed:"
                f" {next(reversed(failed.values())).reason}. More likely this service or its model is broken than the"
                " events. They are stored as dead letters; the following records stay on the topic."
            )
