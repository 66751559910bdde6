"""Requests to resubmit: written with the verdict they stand on, read by pages, withdrawn when it is revised."""

import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, cast, get_args

import orjson
from sqlalchemy import Connection, Row, Select, func, literal_column, select, update

from service.clock import Clock
from service.contracts.page import Page
from service.errors import FieldError, NotFound
from service.requests.records import NewRequest, Request, RequestState
from service.requests.tables import requests
from service.sql import bounded_count, bulk
from service.sql import paging as cursors
from service.sql.packing import pack, unpack
from service.sql.types import short, utc

DETAIL = 1_000  # characters
_PREFIX = "r"
# Written out: a partial index is of no use to values that come as parameters.
OPEN = literal_column("state").in_([literal_column(f"'{state}'") for state in ("held", "waiting", "leased")])


class RequestReader:
    """Reads requests."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def get(self, request_id: str) -> Request:
        """One request.

        Raises:
            NotFound: no such request.
        """
        return request_of(self.row(request_id))

    def row(self, request_id: str) -> Row[Any]:
        """The stored row of a request.

        Raises:
            NotFound: no such request.
        """
        return _found(self._connection.execute(_by_public_id(request_id)).first(), request_id)

    def by_number(self, number: int) -> Row[Any] | None:
        """The row with the store's own number."""
        return self._connection.execute(select(requests).where(requests.c.id == number)).first()

    def of_failures(self, failure_ids: Collection[int]) -> list[Request]:
        """All requests that answer these failures, oldest first."""
        return [request_of(row) for row in self._connection.execute(_by_failures(failure_ids))] if failure_ids else []

    def any_open(self) -> bool:
        """Whether anything is held, waits or is leased."""
        return self._connection.execute(select(requests.c.id).where(OPEN).limit(1)).first() is not None

    def open_rows(self, lineages: Collection[str]) -> dict[str, Row[Any]]:
        """The stored row of the open request of each piece of work that has one."""
        found: dict[str, Row[Any]] = {}
        wanted = sorted(lineages)
        for start in range(0, len(wanted), 500):
            part = wanted[start : start + 500]
            for row in self._connection.execute(select(requests).where(requests.c.lineage.in_(part), OPEN)):
                found[row.lineage] = row
        return found

    def of_lineages(self, lineages: Collection[str]) -> list[Row[Any]]:
        """Stored rows of these pieces of work, oldest first: what was done and how it ended."""
        if not lineages:
            return []
        wanted = select(requests).where(requests.c.lineage.in_(sorted(lineages))).order_by(requests.c.id)
        return list(self._connection.execute(wanted))

    def count_by_state(self) -> dict[RequestState, int]:
        """How many are in each state, counted as far as `service.sql.bounded_count` does."""
        found = bounded_count.by_value(self._connection, requests.c.state, get_args(RequestState))
        return cast("dict[RequestState, int]", found)

    def count_open(self) -> dict[RequestState, int]:
        """How many are held, wait, or are leased, counted as far as `service.sql.bounded_count` does."""
        found = bounded_count.by_value(self._connection, requests.c.state, ("held", "waiting", "leased"))
        return cast("dict[RequestState, int]", found)

    def page(
        self,
        *,
        state: RequestState | None = None,
        cluster: str | None = None,
        failure_id: int | None = None,
        incident_id: int | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Request]:
        """One page, newest first.

        Raises:
            InvalidInput: a limit out of range (1-500), a cursor that is not of this list.
        """
        cursors.check_limit(limit)
        wanted = select(requests)
        asked = {"state": state, "cluster": short(cluster), "failure_id": failure_id, "incident_id": incident_id}
        for name, value in asked.items():
            if value is not None:
                # In the order of the list, not in that of the index of a cluster's jobs: a page stops with its rows.
                column = func.coalesce(requests.c.cluster, "") if name == "cluster" else requests.c[name]
                wanted = wanted.where(column == value)
        if cursor is not None:
            (before,) = cursors.decode(cursor, "requests", int)
            wanted = wanted.where(requests.c.id < before)
        rows = self._connection.execute(wanted.order_by(requests.c.id.desc()).limit(limit + 1)).all()
        items = tuple(request_of(row) for row in rows[:limit])
        return Page(items, cursors.encode("requests", rows[limit - 1].id) if len(rows) > limit else None)


class RequestRepository(RequestReader):
    """Reads and writes requests."""

    def row_for_update(self, request_id: str) -> Row[Any]:
        """The stored row of a request, locked: nobody else changes it before this transaction ends.

        Raises:
            NotFound: no such request.
        """
        wanted = _by_public_id(request_id).with_for_update()
        return _found(self._connection.execute(wanted).first(), request_id)

    def of_failures_for_update(self, failure_ids: Collection[int]) -> list[Request]:
        """All requests that answer these failures, oldest first, locked until this transaction ends."""
        return [request_of(row) for row in self._connection.execute(_by_failures(failure_ids).with_for_update())]

    def add(self, new: Sequence[NewRequest]) -> list[Request]:
        """Store those whose piece of work has no open request yet (any number of shadows); what was stored."""
        if not new:
            return []
        now = utc(self._clock.now())
        rows = [_values(one, now) for one in _sorted(new)]
        stored = self._insert(rows)
        return [
            _made(values, one) for values, one in zip(rows, _sorted(new), strict=True) if values["public_id"] in stored
        ]

    def _insert(self, rows: list[dict[str, Any]]) -> set[str]:
        """Insert what hits no open request of the same work; the public ids of what went in."""
        if bulk.is_postgres(self._connection):
            values = [tuple(row.values()) for row in rows]
            found = bulk.insert_returning(
                self._connection, requests, tuple(rows[0]), values, conflict="", returning="public_id"
            )
            return {row[0] for row in found}
        # A unit of work holds SQLite's only writer's lock: nobody can come between these two statements.
        taken = set(self.open_rows({row["lineage"] for row in rows if row["state"] != "shadow"}))
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
        only: Collection[RequestState] = ("held", "waiting", "leased"),
    ) -> list[Request]:
        """End those that are in one of the states `only`; what they are now. A lease on them is worthless then."""
        if not request_ids:
            return []
        values: dict[str, Any] = {
            "state": state,
            "detail": short(detail, DETAIL),
            "ended_at": self._clock.now(),
            "leased_until": None,
        }
        if retracted:
            values["retracted"] = True
        return self._change(request_ids, only, values)

    def shelve(
        self, request_ids: Collection[str], held_by: str, *, incident_id: int | None = None, leased: bool = False
    ) -> list[Request]:
        """Hold waiting ones (or those held for less, and `leased` ones) until somebody or something lets them go."""
        values = {"state": "held", "held_by": held_by, "incident_id": incident_id}
        only: tuple[RequestState, ...] = ("held", "waiting", "leased") if leased else ("held", "waiting")
        return self._change(request_ids, only, values)

    def take_over(self, request_id: str, by: str, *, expires_at: datetime) -> Request:
        """A person asks for what is held or waits: it may go at once."""
        values = {
            "state": "waiting",
            "held_by": None,
            "origin": "person",
            "asked_by": short(by),
            "not_before": self._clock.now(),
            "expires_at": utc(expires_at),
        }
        [taken] = self._change([request_id], ("held", "waiting"), values)
        return taken

    def let_go(self, times: Mapping[str, datetime], *, expires_at: datetime) -> list[Request]:
        """Let held ones wait for their time only, each from the given time on, valid until `expires_at`."""
        changed: list[Request] = []
        for request_id, at in times.items():
            values = {"state": "waiting", "held_by": None, "not_before": utc(at), "expires_at": utc(expires_at)}
            changed.extend(self._change([request_id], ("held", "waiting"), values))
        return changed

    def retract(self, request_ids: Collection[str]) -> list[Request]:
        """Mark what was acted on as standing on a verdict that was revised."""
        return self._change(request_ids, None, {"retracted": True})

    def expire(self, limit: int = 500) -> list[Request]:
        """End what has expired and is not in a hook's hands; what that was."""
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
        return [request_of(row) for row in sorted(found, key=lambda row: int(row.id))]


def _by_public_id(request_id: str) -> Select[Any]:
    return select(requests).where(requests.c.public_id == short(request_id, 40))


def _by_failures(failure_ids: Collection[int]) -> Select[Any]:
    return select(requests).where(requests.c.failure_id.in_(sorted(failure_ids))).order_by(requests.c.id)


def _found(row: Row[Any] | None, request_id: str) -> Row[Any]:
    if row is None:
        expected = "the request_id of a lease or of the list"
        raise NotFound(f"no request {request_id[:40]}", (FieldError("request_id", expected, request_id[:40]),))
    return row


def request_of(row: Row[Any]) -> Request:
    """A stored request."""
    body = unpack(row.body)
    return Request(
        request_id=row.public_id,
        failure_id=row.failure_id,
        verdict_version=row.verdict_version,
        cluster=row.cluster,
        job_id=row.job_id,
        attempt=row.attempt,
        user=row.user_name,
        team=row.team,
        queue=row.queue,
        gpus=row.gpus,
        lineage=row.lineage,
        side=row.side,
        cause=row.cause,
        state=row.state,
        origin=row.origin,
        action=row.kind,
        plan=row.plan,
        policy=row.policy,
        exclude_nodes=tuple(body["exclude_nodes"]),
        resume_from=body["resume_from"],
        changes=body["changes"],
        reasons=tuple(body["reasons"]),
        created_at=row.created_at,
        not_before=row.not_before,
        expires_at=row.expires_at,
        held_by=row.held_by,
        incident_id=row.incident_id,
        asked_by=row.asked_by,
        leased_by=row.leased_by,
        leased_until=row.leased_until,
        leases=row.leases,
        tries=row.tries,
        ended_at=row.ended_at,
        result=row.result,
        detail=row.detail,
        new_job_id=row.new_job_id,
        retracted=row.retracted,
        outcome=row.outcome,
        outcome_at=row.outcome_at,
        outcome_failure_id=row.outcome_failure_id,
    )


def keys_of(row: Row[Any]) -> tuple[str, ...]:
    """The shared things that an incident may fold a request under."""
    return tuple(orjson.loads(row.fold_keys))


def new_id() -> str:
    """A request's public name: 20 random hexadecimal digits, so that two installations never share one."""
    return _PREFIX + secrets.token_hex(10)


def _sorted(new: Sequence[NewRequest]) -> list[NewRequest]:
    """In one order for all, so that two who add the same wait for each other in turn."""
    return sorted(new, key=lambda one: (one.lineage, one.failure_id))


def _made(values: Mapping[str, Any], one: NewRequest) -> Request:
    return Request(
        request_id=values["public_id"],
        failure_id=one.failure_id,
        verdict_version=one.verdict_version,
        cluster=values["cluster"],
        job_id=values["job_id"],
        attempt=one.attempt,
        user=values["user_name"],
        team=values["team"],
        queue=values["queue"],
        gpus=one.gpus,
        lineage=one.lineage,
        side=one.side,
        cause=one.cause,
        state=one.state,
        origin=one.origin,
        action=one.kind,
        plan=one.plan,
        policy=values["policy"],
        exclude_nodes=one.exclude_nodes,
        resume_from=one.resume_from,
        changes=one.changes,
        reasons=one.reasons,
        created_at=values["created_at"],
        not_before=values["not_before"],
        expires_at=values["expires_at"],
        held_by=one.held_by,
        incident_id=one.incident_id,
        asked_by=values["asked_by"],
    )


def _values(one: NewRequest, now: datetime) -> dict[str, Any]:
    body = {
        "exclude_nodes": one.exclude_nodes,
        "resume_from": one.resume_from,
        "changes": dict(one.changes),
        "reasons": one.reasons,
    }
    return {
        "public_id": new_id(),
        "failure_id": one.failure_id,
        "attempt_id": one.attempt_id,
        "verdict_version": one.verdict_version,
        "cluster": short(one.cluster),
        "job_id": short(one.job_id),
        "attempt": one.attempt,
        "user_name": short(one.user),
        "team": short(one.team),
        "queue": short(one.queue),
        "gpus": one.gpus,
        "gpu_hours": one.gpu_hours,
        "lineage": one.lineage,
        "side": one.side,
        "cause": one.cause,
        "fingerprint": short(one.fingerprint),
        "resource": short(one.resource, 300),
        "step": one.step,
        "started_at": one.started_at,
        "state": one.state,
        "origin": one.origin,
        "kind": one.kind,
        "plan": one.plan,
        "policy": short(one.policy, 100),
        "ask_scheduler": one.ask_scheduler,
        "body": pack(body),
        "fold_keys": orjson.dumps([short(key, 300) for key in one.keys]).decode(),
        "incident_id": one.incident_id,
        "held_by": one.held_by,
        "asked_by": short(one.asked_by),
        "created_at": now,
        "not_before": utc(one.not_before),
        "expires_at": utc(one.expires_at),
        "leases": 0,
        "tries": 0,
        "retracted": False,
    }
