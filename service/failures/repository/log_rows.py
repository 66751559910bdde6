"""The rows with the events and the logs of a failure's attempts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, and_, delete, select

from service.failures.records import AttemptLogs, NewFailure
from service.failures.tables import log_bodies, logs
from service.log_storage.log_bodies import LogBodies
from service.log_storage.records import LogsToStore, ObjectReference
from service.sql import bulk
from service.sql.bulk import upsert
from service.sql.packing import pack, pack_streams, unpack
from service.sql.types import utc


def read(
    connection: Connection, log_storage: LogBodies, failure_ids: Sequence[int], ends: Sequence[datetime]
) -> Mapping[int, list[AttemptLogs]]:
    """The logs of each failure, one entry an attempt, oldest first.

    `ends`: when the attempts of these failures ended, so that PostgreSQL looks only into the months of their logs.
    """
    found: defaultdict[int, list[AttemptLogs]] = defaultdict(list)
    if not ends:
        return found
    body = and_(
        log_bodies.c.failure_id == logs.c.failure_id,
        log_bodies.c.attempt_id == logs.c.attempt_id,
        # Follows from the first condition; with it, PostgreSQL reads few rows however it joins.
        log_bodies.c.failure_id.in_(failure_ids),
        log_bodies.c.ended_at.between(min(ends), max(ends)),
    )
    wanted = (
        select(logs, log_bodies.c.streams.label("body"))
        .outerjoin(log_bodies, body)
        .where(logs.c.failure_id.in_(failure_ids))
        .order_by(logs.c.attempt_id)
    )
    for row in connection.execute(wanted):
        text = partial(log_storage.read, row.streams if row.body is None else row.body)
        found[row.failure_id].append(AttemptLogs(row.attempt_id, text, unpack(row.event)))
    return found


def add(connection: Connection, new: Sequence[NewFailure]) -> None:
    """Store the event and the logs of new failures; they are compressed while they are written."""
    events = ((one.outcome.id, one.outcome.id, pack(one.event)) for one in new)
    bulk.append(connection, logs, ("failure_id", "attempt_id", "event"), events)
    texts = ((one.outcome.id, utc(one.job.ended_at), _column(one.streams)) for one in new)
    bodies = ((number, number, ended_at, body) for number, ended_at, body in texts if body is not None)
    bulk.append(connection, log_bodies, ("failure_id", "attempt_id", "ended_at", "streams"), bodies)


def put(
    connection: Connection,
    failure_id: int,
    attempt_id: int,
    ended_at: datetime,
    streams: LogsToStore | None,
    event: Mapping[str, Any] | None,
) -> None:
    """Store the event and the logs of an attempt that may be stored already; None leaves what is there.

    `ended_at` is the end of the attempt (`jobs.ended_at`).
    """
    kept = upsert(connection, logs).values(failure_id=failure_id, attempt_id=attempt_id, event=pack(event or {}))
    new: dict[str, Any] = {} if event is None else {"event": pack(event)}
    if streams is not None:
        new["streams"] = None  # where they are if they were stored before there was `log_bodies`
    key = ["failure_id", "attempt_id"]
    connection.execute(
        kept.on_conflict_do_update(index_elements=key, set_=new) if new else kept.on_conflict_do_nothing()
    )
    body = None if streams is None else _column(streams)
    if body is None and streams is not None:
        connection.execute(
            delete(log_bodies).where(log_bodies.c.failure_id == failure_id, log_bodies.c.attempt_id == attempt_id)
        )
    if body is not None:
        text = upsert(connection, log_bodies).values(
            failure_id=failure_id, attempt_id=attempt_id, ended_at=ended_at, streams=body
        )
        connection.execute(text.on_conflict_do_update(index_elements=[*key, "ended_at"], set_={"streams": body}))


def _column(streams: LogsToStore) -> bytes | None:
    return streams.reference if isinstance(streams, ObjectReference) else pack_streams(streams)
