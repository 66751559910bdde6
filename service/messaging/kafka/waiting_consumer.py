"""The client of kafka-python, with pauses where its own loop has none and joins that are always finished."""

import time
from typing import Any

from kafka import KafkaConsumer

from service.backoff import Backoff

# A round of `poll` that ends this early, without records, has not waited for anything.
QUICK_S = 0.005
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.001, 0.1


class WaitingConsumer(KafkaConsumer):  # type: ignore[misc]  # kafka-python has no types
    """A consumer whose `poll` waits when the broker accepts connections but does not answer.

    While a heartbeat is overdue, kafka-python 3.0.12 repeats its rounds of `poll` without waiting and occupies a
    processor core until the request times out (30 s). Rounds that end at once without records are followed by growing
    pauses.

    A join that changed partitions started can end between two polls. kafka-python 3.0.12 then sees no reason to join
    and drops the answer: the member has no partitions and sends no heartbeats until the partitions change again. As
    long as a join is not finished, this consumer asks for one.
    """

    def __init__(self, *topics: str, **config: Any) -> None:
        super().__init__(*topics, **config)
        self._pauses = Backoff(first=FIRST_PAUSE_S, longest=LONGEST_PAUSE_S)

    def _poll_once(self, timer: Any, max_records: int, update_offsets: bool = True) -> Any:  # noqa: FBT001, FBT002 - the client's signature
        if self._coordinator.rejoining:
            self._coordinator.rejoin_needed = True
        began = time.monotonic()
        found = super()._poll_once(timer, max_records, update_offsets=update_offsets)
        if found or time.monotonic() - began > QUICK_S:
            self._pauses.reset()
        elif not timer.expired:
            time.sleep(min(self._pauses.next(), timer.timeout_ms / 1000))
        return found
