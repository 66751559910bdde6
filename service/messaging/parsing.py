"""How a record is read, as sources see it."""

from typing import Protocol

from service.contracts.event import JobCompletion
from service.formats.read_outcome import Skipped
from service.messaging.record import Headers
from service.nodes.records import NodeReport


class Parse(Protocol):
    """Bytes → one job's end (service.formats.recognise.parse), or what nodes said (formats.node_events.parse)."""

    def __call__(
        self, value: bytes | None, headers: Headers = (), *, cluster: str | None = None
    ) -> JobCompletion | NodeReport | Skipped:
        """One record read.

        Raises:
            UnreadableRecord: says what is wrong.
        """
        ...
