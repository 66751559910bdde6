"""Stops the consumer where dead letters are no accident any more."""

from collections import deque
from collections.abc import Sequence

from service.dead_letters.records import DeadLetter
from service.messaging.batching import BatchItem
from service.messaging.dead_letters import TooManyDeadLetters
from service.messaging.record import Record

# So many of the last events that could be read but not handled are no accident of theirs: the service is broken.
MAX_UNHANDLED = 50
UNHANDLED_WINDOW = 500


class DeadLetterLimit:
    """Counts what went wrong in a row, and lately.

    Args:
        limit: so many unreadable records in a row are too many. `streak`: how many there are now.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.streak = 0
        self._handled: deque[bool] = deque(maxlen=UNHANDLED_WINDOW)  # whether the last events could be handled

    def note(self, records: Sequence[Record], items: Sequence[BatchItem], poisoned: Sequence[BatchItem]) -> None:
        """A batch is finished and committed: its records, what was handed over, and what nothing could handle.

        Raises:
            TooManyDeadLetters: says what it was and what to look at.
        """
        bad = {item.place: item.what for item in [*items, *poisoned] if isinstance(item.what, DeadLetter)}
        for record in records:
            letter = bad.get(record.place)
            self.streak = 0 if letter is None else self.streak + 1
            if letter is not None and self.streak >= self.limit:
                raise TooManyDeadLetters(
                    f"{self.streak} records in a row could not be read, the last at {letter.place}: {letter.reason}."
                    " Is the topic right, has its format changed? These are kept as dead letters; what follows stays on"
                    " the topic. (FAULTLINE_DEAD_LETTER_LIMIT)"
                )
        failed = {item.place: item.what for item in poisoned if isinstance(item.what, DeadLetter)}
        self._handled.extend(item.place not in failed for item in items if not isinstance(item.what, DeadLetter))
        broken = self._handled.count(False)
        if failed and broken >= MAX_UNHANDLED:
            raise TooManyDeadLetters(
                f"{broken} of the last {len(self._handled)} events could be read but not handled:"
                f" {next(reversed(failed.values())).reason}. More likely this service or its model is broken than the"
                " events. They are kept as dead letters; what follows stays on the topic."
            )
