"""The logs of a batch of finished jobs: inline tails and fetched ones, bounded, cleaned and redacted."""

from collections.abc import Sequence
from dataclasses import dataclass

from classifiers.case import LogStream
from service.events import JobCompletion, LogRef


@dataclass(frozen=True, slots=True)
class Fetched:
    """One event's logs. `streams`: redacted, in the event's order; an unreadable one is empty and says why in
    `missing`. `pending`: those that had not arrived when time was up or are not there yet, worth a later try."""

    streams: tuple[LogStream, ...] = ()
    pending: tuple[LogRef, ...] = ()


class LogFetcher:
    """Reads logs from where the operator allows it.

    `roots` is the allow-list (FAULTLINE_LOG_ROOTS): absolute directories or URLs; nothing outside them is read.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        raise NotImplementedError

    def fetch_all(self, events: Sequence[JobCompletion], deadline_s: float = 60.0) -> list[Fetched]:
        """One `Fetched` for each event, in order, after at most about `deadline_s` seconds; never raises."""
        raise NotImplementedError
