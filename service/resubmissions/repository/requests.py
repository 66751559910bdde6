"""Resubmission requests: stored with their verdict, listed on pages, withdrawn when the verdict is revised."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, cast, get_args

from sqlalchemy import Row, Select, func, literal, select, tuple_, update

from service.contracts.page import Page
from service.errors import FieldError, NotFound
from service.resubmissions.records import HOLD_TIME, OPEN_STATES, NewRequest, Request, RequestState, StoredRequest
from service.resubmissions.repository.request_rows import (
    DETAIL_CHARACTERS,
    OPEN,
    insert_values,
    inserted_request,
    request_of,
    stored_request_of,
)
from service.resubmissions.tables import requests
from service.sql import bulk, paging
from service.sql import paging as cursors
from service.sql.bulk import chunks
from service.sql.reader import TimedReader, undamaged
from service.sql.types import UtcDateTime, short, utc

# Every page reads the second. A statement that is made once is cheaper to execute.
_BY_STATE = paging.bounded_counts(requests.c.state, get_args(RequestState))
_HELD = paging.bounded(select(requests.c.state).where(requests.c.state == "held"))

_STARTS = bulk.BulkStatement(
    {"public_id": "text", "not_before": "timestamptz"},
    "UPDATE requests SET not_before = given.not_before FROM {given} WHERE requests.public_id = given.public_id",
)


class RequestReader(TimedReader):
    """Reads requests."""

    def get(self, request_id: str) -> Request:
        """One request.

        Raises:
            NotFound: no such request.
        """
        return request_of(_found(self._connection.execute(_by_public_id(request_id)).first(), request_id))

    def stored(self, request_id: str) -> StoredRequest:
        """One request with all its columns.

        Raises:
            NotFound: no such request.
        """
        return stored_request_of(_found(self._connection.execute(_by_public_id(request_id)).first(), request_id))

    def by_row_id(self, row_id: int) -> StoredRequest | None:
        """The request with this row number."""
        row = self._connection.execute(select(requests).where(requests.c.id == row_id)).first()
        return None if row is None else stored_request_of(row)

    def of_failures(self, failure_ids: Collection[int]) -> list[Request]:
        """All requests for these failures, oldest first."""
        return _requests_of(self._connection.execute(_by_failures(failure_ids))) if failure_ids else []

    def any_open(self) -> bool:
        """Whether any request is held, waiting or leased."""
        return self._connection.execute(select(requests.c.id).where(OPEN).limit(1)).first() is not None

    def open_by_lineage(self, lineages: Collection[str]) -> dict[str, StoredRequest]:
        """The open request of each lineage that has one."""
        found: dict[str, StoredRequest] = {}
        wanted = sorted(lineages)
        for part in chunks(wanted):
            rows = self._connection.execute(select(requests).where(requests.c.lineage.in_(part), OPEN))
            found |= {one.lineage: one for one in undamaged(rows, stored_request_of, "request")}
        return found

    def lineages_with_open(self, lineages: Collection[str]) -> set[str]:
        """Those of these lineages that have an open request."""
        found: set[str] = set()
        for part in chunks(sorted(lineages)):
            found |= set(
                self._connection.execute(select(requests.c.lineage).where(requests.c.lineage.in_(part), OPEN)).scalars()
            )
        return found

    def of_lineages(self, lineages: Collection[str]) -> list[StoredRequest]:
        """All requests of these lineages, oldest first."""
        if not lineages:
            return []
        wanted = select(requests).where(requests.c.lineage.in_(sorted(lineages))).order_by(requests.c.id)
        return undamaged(self._connection.execute(wanted), stored_request_of, "request")

    def count_by_state(self) -> dict[RequestState, int]:
        """The number of requests in each state, up to the bound of `service.sql.paging`."""
        found = paging.read_counts(self._connection, _BY_STATE)
        return cast("dict[RequestState, int]", found)

    def count_held(self) -> int:
        """The number of held requests, up to the bound of `service.sql.paging`."""
        return int(self._connection.execute(_HELD).scalar_one())

    def page(
        self,
        *,
        state: RequestState | None = None,
        cluster: str | None = None,
        failure_id: int | None = None,
        incident_id: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Request]:
        """One page, newest first; `since` and `until`: when they were made, [since, until).

        Raises:
            InvalidInput: a limit out of range (1-500), a cursor that is not of this list.
        """
        cursors.check_limit(limit)
        wanted = select(requests)
        filters = {"state": state, "cluster": short(cluster), "failure_id": failure_id, "incident_id": incident_id}
        for name, value in filters.items():
            if value is not None:
                # In the order of the list, not of the index of a cluster's jobs, so that reading stops at the end of
                # the page.
                column = func.coalesce(requests.c.cluster, "") if name == "cluster" else requests.c[name]
                wanted = wanted.where(column == value)
        if since is not None:
            wanted = wanted.where(requests.c.created_at >= utc(since))
        if until is not None:
            wanted = wanted.where(requests.c.created_at < utc(until))
        if cursor is not None:
            made, before = cursors.decode(cursor, "requests", str, int)
            at = cursors.instant(cursor, made)
            wanted = wanted.where(
                tuple_(requests.c.created_at, requests.c.id) < tuple_(literal(at, UtcDateTime), before)
            )
        # By the time of the period and not by id, so that one index gives the period, its order and its end.
        ordered = wanted.order_by(requests.c.created_at.desc(), requests.c.id.desc())
        rows = self._connection.execute(ordered.limit(limit + 1)).all()
        items = tuple(_requests_of(rows[:limit]))
        if len(rows) <= limit:
            return Page(items, None)
        last = rows[limit - 1]
        return Page(items, cursors.encode("requests", last.created_at.replace(tzinfo=None).isoformat(), last.id))


class RequestRepository(RequestReader):
    """Reads and writes requests."""

    def stored_for_update(self, request_id: str) -> StoredRequest:
        """One request with all its columns, locked until this transaction ends.

        Raises:
            NotFound: no such request.
        """
        wanted = _by_public_id(request_id).with_for_update()
        return stored_request_of(_found(self._connection.execute(wanted).first(), request_id))

    def of_failures_for_update(self, failure_ids: Collection[int]) -> list[Request]:
        """All requests for these failures, oldest first, locked until this transaction ends."""
        return _requests_of(self._connection.execute(_by_failures(failure_ids).with_for_update()))

    def add(self, new: Sequence[NewRequest]) -> list[Request]:
        """Store the requests of lineages without an open request, and all shadow requests; returns those stored."""
        if not new:
            return []
        now = utc(self._clock.now())
        rows = [insert_values(request, now) for request in _in_lock_order(new)]
        stored = self._insert(rows)
        return [inserted_request(values) for values in rows if values["public_id"] in stored]

    def _insert(self, rows: list[dict[str, Any]]) -> set[str]:
        """Insert rows that do not conflict with an open request of the same lineage; returns their public ids."""
        if bulk.is_postgres(self._connection):
            values = [tuple(row.values()) for row in rows]
            found = bulk.insert_returning(
                self._connection, requests, tuple(rows[0]), values, conflict="", returning="public_id"
            )
            return {row[0] for row in found}
        # A unit of work holds SQLite's only write lock, so that no other process runs between these two statements.
        taken = self.lineages_with_open({row["lineage"] for row in rows if row["state"] != "shadow"})
        free: list[dict[str, Any]] = []
        for row in rows:
            if row["state"] == "shadow" or row["lineage"] not in taken:
                free.append(row)
                taken |= {row["lineage"]} if row["state"] != "shadow" else set()
        if free:
            self._connection.execute(requests.insert(), free)
        return {row["public_id"] for row in free}

    def end(
        self,
        request_ids: Collection[str],
        state: RequestState,
        *,
        detail: str,
        retracted: bool = False,
        only: Collection[RequestState] = OPEN_STATES,
    ) -> list[Request]:
        """End the requests that are in one of the states `only`; returns them.

        Their leases become invalid.
        """
        if not request_ids:
            return []
        values: dict[str, Any] = {
            "state": state,
            "detail": short(detail, DETAIL_CHARACTERS),
            "ended_at": self._clock.now(),
            "leased_until": None,
        }
        if retracted:
            values["retracted"] = True
        return self._change(request_ids, only, values)

    def hold(
        self, request_ids: Collection[str], held_by: str, *, incident_id: int | None = None, leased: bool = False
    ) -> list[Request]:
        """Hold waiting and held (and `leased`) requests until a person or the automation releases them.

        They stay valid for `HOLD_TIME` from now on: one that waited for its start expires much earlier.
        """
        expires_at = utc(self._clock.now() + HOLD_TIME)
        values = {"state": "held", "held_by": held_by, "incident_id": incident_id, "expires_at": expires_at}
        only: tuple[RequestState, ...] = OPEN_STATES if leased else ("held", "waiting")
        return self._change(request_ids, only, values)

    def release_for_person(self, request_id: str, actor: str, *, expires_at: datetime) -> Request:
        """Release a held or waiting request for a person: it may start at once."""
        values = {
            "state": "waiting",
            "held_by": None,
            "origin": "person",
            "asked_by": short(actor),
            "not_before": self._clock.now(),
            "expires_at": utc(expires_at),
        }
        [taken] = self._change([request_id], ("held", "waiting"), values)
        return taken

    def release(self, times: Mapping[str, datetime], *, expires_at: datetime) -> list[Request]:
        """Release held requests: each may start at its given time and is valid until `expires_at`.

        Returns those released, in the order of `times`.
        """
        values = {"state": "waiting", "held_by": None, "expires_at": utc(expires_at)}
        released: list[Request] = []
        for part in chunks(list(times)):
            changed = {one.request_id: one for one in self._change(part, ("held", "waiting"), values)}
            new = {one: utc(times[one]) for one in part if one in changed}
            bulk.write(self._connection, _STARTS, [{"public_id": one, "not_before": new[one]} for one in new])
            released += [replace(changed[one], not_before=at) for one, at in new.items()]
        return released

    def retract(self, request_ids: Collection[str]) -> list[Request]:
        """Mark completed requests as based on a revised verdict."""
        return self._change(request_ids, None, {"retracted": True})

    def expire(self, limit: int = 500) -> list[Request]:
        """End requests that have expired and are not leased; returns them."""
        now = self._clock.now()
        free = (requests.c.state != "leased") | (requests.c.leased_until <= now)
        wanted = (
            select(requests.c.public_id)
            .where(OPEN, requests.c.expires_at <= now, free)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        ids = list(self._connection.execute(wanted).scalars())
        return self.end(ids, "expired", detail="it was not done in time")

    def _change(
        self, request_ids: Collection[str], only: Collection[RequestState] | None, values: Mapping[str, Any]
    ) -> list[Request]:
        wanted = update(requests).where(requests.c.public_id.in_(sorted(request_ids)))
        if only is not None:
            wanted = wanted.where(requests.c.state.in_(list(only)))
        found = self._connection.execute(wanted.values(**values).returning(requests)).all()
        return _requests_of(sorted(found, key=lambda row: int(row.id)))


def _requests_of(rows: Iterable[Row[Any]]) -> list[Request]:
    return undamaged(rows, request_of, "request")


def _by_public_id(request_id: str) -> Select[Any]:
    return select(requests).where(requests.c.public_id == short(request_id, 40))


def _by_failures(failure_ids: Collection[int]) -> Select[Any]:
    return select(requests).where(requests.c.failure_id.in_(sorted(failure_ids))).order_by(requests.c.id)


def _found(row: Row[Any] | None, request_id: str) -> Row[Any]:
    if row is None:
        expected = "the request_id of a lease or of the list"
        raise NotFound(f"no request {request_id[:40]}", (FieldError("request_id", expected, request_id[:40]),))
    return row


def _in_lock_order(new: Sequence[NewRequest]) -> list[NewRequest]:
    """The same order in every transaction, so that two that add the same requests cannot deadlock."""
    return sorted(new, key=lambda request: (request.lineage, request.failure_id))
