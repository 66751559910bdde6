"""Logs of failures on their way into the log storage, back for another verdict, and those that are still missing."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from classifiers.contracts import LogStream
from service.backoff import pause_after
from service.contracts.event import JobCompletion, LogRef, Status
from service.db.session import Store
from service.errors import NotFound, Unavailable
from service.failures.records import AttemptLogs, PendingLog
from service.log_storage.records import LogsToStore, NewLogs
from service.logs.fetch import FetchedLogs
from service.pipeline.event_redaction import storable

PENDING_FIRST_TRY = timedelta(seconds=15)
PENDING_LONGEST_PAUSE = timedelta(minutes=5)
PENDING_UNTIL = timedelta(minutes=30)
# Slurm sends the record of a job that it ends itself before the nodes stop the job: they have 30 s for it (KillWait of
# slurm.conf). The last lines of the log, among them Slurm's own reason, are written meanwhile.
STOPPED_FROM_OUTSIDE = frozenset({Status.TIMEOUT, Status.CANCELLED, Status.PREEMPTED, Status.EVICTED, Status.NODE_FAIL})
STOPPING_TIME = timedelta(seconds=40)


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


def pending_logs(
    failure_id: int, attempt_id: int, event: JobCompletion, logs: FetchedLogs, now: datetime
) -> list[PendingLog]:
    """The note which logs of an attempt to fetch later, if any: missing ones, and those that are still written."""
    first_try = now + PENDING_FIRST_TRY
    later = [ref for ref in logs.pending if storable(ref)]
    if event.status in STOPPED_FROM_OUTSIDE and now - event.ended_at < STOPPING_TIME:
        later = _growing(event.logs, logs.streams) or later
        first_try = max(first_try, min(event.ended_at, now) + STOPPING_TIME)
    if not later:
        return []
    wanted = tuple(ref.model_dump(mode="json", exclude_none=True) for ref in later)
    return [PendingLog(failure_id, attempt_id, wanted, next_at=first_try, until=now + PENDING_UNTIL)]


def next_try(entry: PendingLog, now: datetime) -> datetime:
    """When missing logs are tried once more: after a pause that doubles with each try."""
    first, longest = PENDING_FIRST_TRY.total_seconds(), PENDING_LONGEST_PAUSE.total_seconds()
    return now + timedelta(seconds=pause_after(entry.tries + 1, first, longest))


def _growing(refs: Sequence[LogRef], streams: Sequence[LogStream]) -> list[LogRef]:
    """The logs that can be read again; none if two have one place, since a text could replace that of another log."""
    if len({_place(stream) for stream in streams}) < len(streams):
        return []
    return [ref for ref in refs if ref.uri is not None and ref.tail is None and ref.missing is None and storable(ref)]


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


def with_arrived(earlier: Sequence[LogStream], arrived: Sequence[LogStream]) -> tuple[LogStream, ...] | None:
    """Logs of an attempt with those that were read later; None if these say nothing new.

    A text replaces the note that it was missing, or else the text that was read while the log was still written. A
    note that a log is missing never replaces a text.
    """
    texts = {_place(one): one.text for one in earlier if one.missing is None}
    notes = {_place(one) for one in earlier if one.missing is not None}

    def is_news(one: LogStream) -> bool:
        place = _place(one)
        if one.missing is not None:
            return place not in texts
        return place in notes or one.text != texts.get(place)

    news = [one for one in arrived if is_news(one)]
    if all(one.missing is not None for one in news):
        return None
    replaced = {_place(one) for one in news}
    kept = [one for one in earlier if _place(one) not in replaced or (one.missing is None and _place(one) in notes)]
    return (*kept, *news)


def _place(stream: LogStream) -> tuple[int | None, str | None, str | None]:
    return stream.rank, stream.node, stream.stream
