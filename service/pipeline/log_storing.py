"""Logs of failures on their way into the log storage, back for another verdict, and those that are still missing."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from classifiers.contracts import LogStream
from service.contracts.event import JobCompletion, LogRef
from service.db.session import Store
from service.errors import NotFound, Unavailable
from service.failures.records import AttemptLogs, PendingLog
from service.log_storage.records import LogsToStore, NewLogs

PENDING_FIRST_TRY = timedelta(seconds=15)
PENDING_UNTIL = timedelta(minutes=30)


def store_logs(store: Store, attempts: Sequence[tuple[JobCompletion, Sequence[LogStream]]]) -> list[LogsToStore]:
    """Store the logs of attempts as far as they are stored outside the database; call it before the transaction.

    Args:
        store: where to.
        attempts: the event and the redacted logs of each.

    Returns:
        What the rows of the attempts are to hold, in order.
    """
    return store.log_bodies.put(
        [NewLogs(event.cluster, event.job_id, event.key(), event.ended_at, streams) for event, streams in attempts]
    )


def pending_logs(failure_id: int, attempt_id: int, refs: Sequence[LogRef], now: datetime) -> PendingLog:
    """The note that these logs of an attempt are to be fetched later."""
    return PendingLog(
        failure_id,
        attempt_id,
        tuple(ref.model_dump(mode="json", exclude_none=True) for ref in refs),
        next_at=now + PENDING_FIRST_TRY,
        until=now + PENDING_UNTIL,
    )


def streams_before(stored: AttemptLogs) -> tuple[LogStream, ...] | None:
    """The logs that are stored for an attempt, empty if they have been removed.

    None if their storage does not answer: then new logs must not replace them.
    """
    try:
        return stored.readable_streams()
    except NotFound:
        return ()
    except Unavailable:
        return None


def with_arrived(earlier: Sequence[LogStream], arrived: Sequence[LogStream]) -> tuple[LogStream, ...]:
    """Logs of an attempt with those that arrived later, in place of the notes that these were missing."""
    places = {(stream.rank, stream.node, stream.stream) for stream in arrived}
    others = [one for one in earlier if one.missing is None or (one.rank, one.node, one.stream) not in places]
    return (*others, *arrived)
