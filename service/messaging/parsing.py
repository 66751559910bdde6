"""The parser protocol of consumers."""

from typing import Protocol

from service.contracts.event import JobCompletion
from service.formats.read_outcome import Skipped
from service.messaging.record import Headers
from service.nodes.records import NodeReport


class Parse(Protocol):
    """Parses bytes to a job completion (formats.recognise.parse) or a node report (formats.node_events.parse)."""

    def __call__(
        self, value: bytes | None, headers: Headers = (), *, cluster: str | None = None
    ) -> JobCompletion | NodeReport | Skipped:
        """Parse one record.

        Raises:
            UnreadableRecord: the record is wrong; the message says where.
        """
        ...
