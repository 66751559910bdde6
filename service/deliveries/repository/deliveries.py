"""Deliveries: each outbox message once for each endpoint that receives it.

Endpoints do not wait for each other. A lease moves `available_at` to its own end: if a process dies, the delivery is
due again then.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, exists, literal_column, or_, select, update

from service.contracts.page import Page
from service.deliveries.records import DeliveryState, DueDelivery, FailureFacts, NewDelivery, StoredDelivery
from service.deliveries.repository.outbox import payload_of
from service.deliveries.tables import deliveries, outbox
from service.errors import NotFound
from service.failures.tables import failures
from service.jobs.tables import jobs
from service.sql import bulk
from service.sql import paging as cursors
from service.sql.reader import TimedReader, record_of, undamaged
from service.sql.types import short, utc

_COLUMNS = ("message_id", "endpoint", "state", "available_at", "attempts", "detail", "done_at")
DETAIL = 300
# Written as a literal: a partial index cannot be used for a bound parameter.
WAITING: ColumnElement[str] = literal_column("'waiting'")


class DeliveryReader(TimedReader):
    """Reads deliveries."""

    def due(self, endpoint: str) -> bool:
        """Whether a delivery of the endpoint is due."""
        wanted = select(deliveries.c.message_id).where(*self._due(endpoint)).limit(1)
        return self._connection.execute(wanted).first() is not None

    def page(
        self, *, state: DeliveryState = "given_up", limit: int = 50, cursor: str | None = None
    ) -> Page[StoredDelivery]:
        """Deliveries in a state, newest message first.

        Raises:
            InvalidInput: a limit out of range (1-500), a cursor that is not of this list.
        """
        cursors.check_limit(limit)
        wanted = (
            select(deliveries, outbox.c.type, outbox.c.key, outbox.c.created_at)
            .join(outbox, outbox.c.id == deliveries.c.message_id)
            .where(deliveries.c.state == literal_column(f"'{state}'"))
            .order_by(deliveries.c.message_id.desc(), deliveries.c.endpoint)
            .limit(limit + 1)
        )
        kind = f"deliveries-{state}"
        if cursor is not None:
            before, name = cursors.decode(cursor, kind, int, str)
            same = and_(deliveries.c.message_id == before, deliveries.c.endpoint > name)
            wanted = wanted.where((deliveries.c.message_id < before) | same)
        rows = self._connection.execute(wanted).all()
        return cursors.page_of(rows, limit, _stored, kind, lambda last: (last.message_id, last.endpoint))

    def facts(self, failure_ids: Collection[int]) -> Mapping[int, FailureFacts]:
        """The routing facts of these failures; deleted ones are absent."""
        before = failures.alias("before")
        known = exists().where(before.c.fingerprint == failures.c.fingerprint, before.c.id < failures.c.id)
        rows = self._connection.execute(
            select(
                failures.c.id,
                failures.c.status,
                failures.c.user_name,
                failures.c.team,
                failures.c.queue,
                failures.c.gpu_hours_lost,
                jobs.c.gpus,
                known.label("known"),
            )
            .select_from(failures.outerjoin(jobs, jobs.c.id == failures.c.id))
            .where(failures.c.id.in_(list(failure_ids)))
        )
        return {
            row.id: FailureFacts(
                row.status, row.user_name, row.team, row.queue, row.gpu_hours_lost, row.gpus, not row.known
            )
            for row in rows
        }

    def _due(self, endpoint: str) -> tuple[ColumnElement[bool], ...]:
        return (
            deliveries.c.endpoint == endpoint,
            deliveries.c.state == WAITING,
            deliveries.c.available_at <= self._clock.now(),
        )


class DeliveryRepository(DeliveryReader):
    """Reads and writes deliveries."""

    def add(self, wanted: Sequence[NewDelivery]) -> None:
        """Store deliveries, due at once."""
        now = utc(self._clock.now())
        rows = [
            (
                one.message_id,
                one.endpoint,
                "waiting" if one.refused is None else "given_up",
                now,
                0,
                short(one.refused, DETAIL),
                None if one.refused is None else now,
            )
            for one in wanted
        ]
        bulk.append(self._connection, deliveries, _COLUMNS, rows)

    def lease(self, endpoint: str, owner: str, *, limit: int, seconds: float) -> list[DueDelivery]:
        """At most `limit` due deliveries of the endpoint, oldest first, leased to `owner` for `seconds`.

        Those of a damaged message are given up.
        """
        ids = list(
            self._connection.execute(
                select(deliveries.c.message_id)
                .where(*self._due(endpoint))
                .order_by(deliveries.c.available_at, deliveries.c.message_id)
                .limit(limit)
                .with_for_update(skip_locked=True)
            ).scalars()
        )
        if not ids:
            return []
        self._connection.execute(
            update(deliveries)
            .where(deliveries.c.endpoint == endpoint, deliveries.c.message_id.in_(ids))
            .values(leased_by=owner, available_at=self._clock.now() + timedelta(seconds=seconds))
        )
        rows = self._connection.execute(
            select(outbox, deliveries.c.attempts.label("tries"))
            .join(deliveries, deliveries.c.message_id == outbox.c.id)
            .where(deliveries.c.endpoint == endpoint, outbox.c.id.in_(ids))
        ).all()
        found = undamaged(
            rows,
            lambda row: DueDelivery(
                row.id, endpoint, row.type, row.key, payload_of(row.payload), row.created_at, row.tries
            ),
            "message",
            lambda number: self.give_up(owner, endpoint, [number], "the stored message is damaged"),
        )
        by_id = {one.message_id: one for one in found}
        return [by_id[one] for one in ids if one in by_id]

    def sent(self, owner: str, endpoint: str, ids: Collection[int]) -> int:
        """Mark deliveries that `owner` still holds as sent; returns how many."""
        return self._end(owner, endpoint, ids, "sent", None)

    def give_up(self, owner: str, endpoint: str, ids: Collection[int], detail: str) -> int:
        """Mark deliveries that `owner` still holds as abandoned; returns how many."""
        return self._end(owner, endpoint, ids, "given_up", detail)

    def retry(self, owner: str, endpoint: str, message_id: int, *, available_at: datetime, detail: str) -> bool:
        """Schedule a failed delivery for `available_at`; whether `owner` still held it."""
        changed = self._connection.execute(
            update(deliveries)
            .where(*self._held(owner, endpoint, [message_id]))
            .values(
                attempts=deliveries.c.attempts + 1,
                available_at=utc(available_at),
                leased_by=None,
                detail=short(detail, DETAIL),
            )
        ).rowcount
        return changed == 1

    def release(self, owner: str, endpoint: str, ids: Collection[int]) -> int:
        """Release deliveries that were not tried; returns how many `owner` still held."""
        return self._connection.execute(
            update(deliveries)
            .where(*self._held(owner, endpoint, ids))
            .values(available_at=self._clock.now(), leased_by=None)
        ).rowcount

    def wait(self, owner: str, endpoint: str, ids: Collection[int], *, until: datetime) -> int:
        """Delay deliveries that `owner` still holds until `until`, without counting an attempt; returns how many."""
        return self._connection.execute(
            update(deliveries)
            .where(*self._held(owner, endpoint, ids))
            .values(available_at=utc(until), leased_by=None, detail="waits for its digest")
        ).rowcount

    def give_up_all(self, endpoint: str, detail: str) -> int:
        """Abandon all waiting deliveries of the endpoint; returns how many."""
        return self._connection.execute(
            update(deliveries)
            .where(deliveries.c.endpoint == endpoint, deliveries.c.state == WAITING)
            .values(state="given_up", leased_by=None, done_at=self._clock.now(), detail=short(detail, DETAIL))
        ).rowcount

    def give_up_older(self, before: datetime, detail: str) -> int:
        """Abandon all waiting deliveries created before a time, regardless of who holds them; returns how many.

        One that was sent again has no attempt yet and is due since then: it is kept for its first attempt.
        """
        created = exists().where(outbox.c.id == deliveries.c.message_id, outbox.c.created_at < before)
        old = and_(created, or_(deliveries.c.attempts > 0, deliveries.c.available_at < before))
        return self._connection.execute(
            update(deliveries)
            .where(deliveries.c.state == WAITING, deliveries.c.available_at <= self._clock.now(), old)
            .values(state="given_up", leased_by=None, done_at=self._clock.now(), detail=short(detail, DETAIL))
        ).rowcount

    def send_again(self, message_id: int, endpoint: str) -> None:
        """Send a completed or abandoned delivery again, with its whole schedule and the same id.

        Raises:
            NotFound: there is no such delivery, or it still waits.
        """
        changed = self._connection.execute(
            update(deliveries)
            .where(
                deliveries.c.endpoint == endpoint,
                deliveries.c.message_id == message_id,
                deliveries.c.state != "waiting",
            )
            .values(state="waiting", attempts=0, available_at=self._clock.now(), leased_by=None, done_at=None)
        ).rowcount
        if changed != 1:
            raise NotFound(f"no delivery of message {message_id} to {endpoint} that has ended")

    def _held(self, owner: str, endpoint: str, ids: Collection[int]) -> tuple[ColumnElement[bool], ...]:
        return (
            deliveries.c.endpoint == endpoint,
            deliveries.c.message_id.in_(list(ids)),
            deliveries.c.leased_by == owner,
            deliveries.c.state == WAITING,
        )

    def _end(self, owner: str, endpoint: str, ids: Collection[int], state: DeliveryState, detail: str | None) -> int:
        return self._connection.execute(
            update(deliveries)
            .where(*self._held(owner, endpoint, ids))
            .values(
                state=state,
                attempts=deliveries.c.attempts + 1,
                leased_by=None,
                done_at=self._clock.now(),
                detail=short(detail, DETAIL),
            )
        ).rowcount


def _stored(row: Row[Any]) -> StoredDelivery:
    return record_of(StoredDelivery, row)
