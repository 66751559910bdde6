"""Log texts on their way into the database row of their attempt."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from classifiers.contracts import LogStream


@dataclass(frozen=True, slots=True)
class NewLogs:
    """The redacted logs of one attempt, before they are stored.

    Attributes:
        cluster: of the job.
        job_id: of the job.
        event_id: the identity of the attempt's event.
        ended_at: the end of the job.
        streams: its logs.
    """

    cluster: str
    job_id: str
    event_id: str
    ended_at: datetime
    streams: Sequence[LogStream]


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """Logs that are in an object already. `reference` is the content of the database column."""

    reference: bytes


# What a repository stores as the logs of an attempt: the logs themselves, or a reference to them.
LogsToStore = Sequence[LogStream] | ObjectReference
