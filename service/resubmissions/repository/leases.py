"""Leases of requests: one hook at a time holds a request; an expired lease returns it.

A transaction that leases on a cluster holds that cluster's lock until it ends, so that the rates, incidents and storms
that it checked are still valid when the lease is granted.
"""

import secrets
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

from sqlalchemy import Select, and_, exists, func, or_, select, update

from service.contracts.advice import LINEAGE_LABEL, REQUEST_LABEL, AckResult
from service.incidents.tables import incidents
from service.resubmissions.records import (
    HookAnswer,
    Lease,
    Mark,
    RecentResubmit,
    Request,
    RequestState,
    StoredRequest,
)
from service.resubmissions.repository.request_rows import DETAIL_CHARACTERS, OPEN, request_of, stored_request_of
from service.resubmissions.tables import lineage_marks, requests, storms
from service.sql import bulk
from service.sql.bulk import chunks
from service.sql.reader import TimedReader, undamaged
from service.sql.types import short, utc

_PORTION = 200  # requests of one transaction
_STATE_OF: Mapping[AckResult, RequestState] = {
    "done": "done",
    "already_done": "done",
    "refused": "refused",
    "unknown": "unknown",
}


class LeaseReader(TimedReader):
    """Reads leases."""

    def probed_lineages(self, incident_id: int) -> set[str]:
        """The lineages that were probes of an incident."""
        wanted = select(requests.c.lineage).where(
            requests.c.incident_id == incident_id, requests.c.leased_at.is_not(None)
        )
        return set(self._connection.execute(wanted).scalars())

    def leased_at_of_lineages(self, lineages: Collection[str]) -> dict[tuple[str, bool], list[datetime]]:
        """When the automatic resubmits of each lineage were leased, by lineage and whether the user is to blame."""
        of_user = (requests.c.side == "user").label("of_user")
        found: dict[tuple[str, bool], list[datetime]] = defaultdict(list)
        for some in chunks(sorted(set(lineages))):
            wanted = select(requests.c.lineage, of_user, requests.c.leased_at).where(
                requests.c.lineage.in_(some),
                requests.c.origin == "policy",
                requests.c.state.in_(("leased", "done", "unknown")),
                requests.c.leased_at.is_not(None),
            )
            for row in self._connection.execute(wanted):
                found[row.lineage, bool(row.of_user)].append(row.leased_at)
        return found

    def recent_resubmits(self, cluster: str, since: datetime) -> list[RecentResubmit]:
        """Automatic resubmits on a cluster since a time, for the limits on retry storms and rates; oldest first."""
        wanted = (
            select(
                *(requests.c.id, requests.c.cause, requests.c.resource, requests.c.outcome),
                *(requests.c.leased_at, requests.c.user_name),
            )
            .where(
                requests.c.cluster == short(cluster),
                requests.c.leased_at.is_not(None),
                requests.c.leased_at > utc(since),
                requests.c.origin == "policy",
                requests.c.state.in_(("leased", "done", "unknown", "withdrawn")),
            )
            .order_by(requests.c.leased_at)
        )
        return [
            RecentResubmit(row.id, row.cause, row.resource, row.user_name, row.leased_at, row.outcome)
            for row in self._connection.execute(wanted)
        ]


class LeaseRepository(LeaseReader):
    """Reads and writes leases."""

    def lock_cluster(self, cluster: str) -> None:
        """Lock leasing on this cluster until the transaction ends."""
        digest = blake2b(f"lease\0{short(cluster)}".encode(), digest_size=8).digest()
        bulk.lock(self._connection, [int.from_bytes(digest, "big", signed=True)])

    def due(self, cluster: str, *, limit: int, paused_users: Collection[str] = ()) -> list[StoredRequest]:
        """Requests whose start time has come: waiting ones, and those with an expired lease; oldest first.

        Of `paused_users` only requests made by a person.
        """
        now = self._clock.now()
        free = or_(
            requests.c.state == "waiting",
            and_(requests.c.state == "leased", requests.c.leased_until <= now),
        )
        wanted = select(requests).where(
            OPEN,
            requests.c.cluster == short(cluster),
            requests.c.not_before <= now,
            requests.c.expires_at > now,
            free,
            or_(
                requests.c.origin != "policy",
                requests.c.user_name.is_(None),
                requests.c.user_name.not_in([short(user) for user in paused_users]),
            ),
        )
        return self._locked(wanted.order_by(requests.c.not_before, requests.c.id), limit)

    def held_by(self, cluster: str, held_by: str, *, limit: int, incident_id: int | None = None) -> list[StoredRequest]:
        """Held requests that have not expired, those with the fewest GPUs first."""
        wanted = select(requests).where(
            OPEN,
            requests.c.cluster == short(cluster),
            requests.c.state == "held",
            requests.c.held_by == held_by,
            requests.c.expires_at > self._clock.now(),
        )
        if incident_id is not None:
            wanted = wanted.where(requests.c.incident_id == incident_id)
        cheapest = func.coalesce(requests.c.gpus, 0)
        return self._locked(wanted.order_by(cheapest, requests.c.id), limit)

    def held_temporarily(
        self, held_by: Collection[str], *, before: datetime, after_id: int, limit: int
    ) -> list[StoredRequest]:
        """Requests of any cluster that are held for a limited time, whose start time has come; by row id."""
        wanted = (
            select(requests)
            .where(OPEN, requests.c.state == "held", requests.c.held_by.in_(list(held_by)))
            .where(requests.c.not_before <= utc(before), requests.c.expires_at > utc(before))
            .where(requests.c.id > after_id)
        )
        return self._locked(wanted.order_by(requests.c.id), limit)

    def open_despite_mark(self, mark: Mark) -> list[StoredRequest]:
        """Open requests of any cluster whose lineage has this mark, except those that it has stopped already.

        A lease that is valid is left alone by the mark `hold`, but not by `never`.
        """
        marked = exists().where(lineage_marks.c.lineage == requests.c.lineage, lineage_marks.c.mark == mark)
        wanted = select(requests).where(OPEN, marked)
        if mark == "hold":
            leased = and_(requests.c.state == "leased", requests.c.leased_until > self._clock.now())
            held = and_(requests.c.state == "held", func.coalesce(requests.c.held_by, "") == "person")
            wanted = wanted.where(~leased, ~held)
        return self._locked(wanted.order_by(requests.c.id), _PORTION)

    def held_without_cause(self) -> list[StoredRequest]:
        """Requests of any cluster that are held by an incident that is closed, or by a storm that is over."""
        key = requests.c.cause + "|" + requests.c.cluster + "|" + requests.c.resource  # as `storm_key` makes it
        closed = exists().where(incidents.c.id == requests.c.incident_id, incidents.c.closed_at.is_not(None))
        over = ~exists().where(storms.c.storm_key == key)
        wanted = (
            select(requests)
            .where(OPEN, requests.c.state == "held", requests.c.expires_at > self._clock.now())
            .where(or_(and_(requests.c.held_by == "incident", closed), and_(requests.c.held_by == "storm", over)))
        )
        return self._locked(wanted.order_by(requests.c.id), _PORTION)

    def grant(self, granted: Sequence[StoredRequest], hook: str, seconds: float) -> list[Lease]:
        """Lease these requests, locked by this transaction, to a hook."""
        now = self._clock.now()
        until = utc(now + timedelta(seconds=seconds))
        leases = []
        for request in granted:
            token = secrets.token_urlsafe(24)
            self._connection.execute(
                update(requests)
                .where(requests.c.id == request.id)
                .values(
                    state="leased",
                    held_by=None,
                    lease_token=token,
                    leased_by=short(hook),
                    leased_until=until,
                    leased_at=now,
                    leases=requests.c.leases + 1,
                )
            )
            leases.append(_lease(request, token, until))
        return leases

    def record_answer(
        self, request: StoredRequest, answer: HookAnswer, *, state: RequestState | None = None
    ) -> Request:
        """Store a hook's answer; `state` overrides the state that the answer implies."""
        detail = answer.detail
        changed = self._connection.execute(
            update(requests)
            .where(requests.c.id == request.id)
            .values(
                state=state or _STATE_OF[answer.result],
                result=answer.result,
                new_job_id=short(answer.new_job_id),
                detail=short(detail, DETAIL_CHARACTERS) if detail is not None else request.detail,
                ended_at=self._clock.now(),
                leased_until=None,
            )
            .returning(requests)
        ).one()
        return request_of(changed)

    def return_to_queue(self, request: StoredRequest, *, not_before: datetime, detail: str) -> Request:
        """Return a request that a hook could not carry out to the waiting ones, until `not_before`."""
        changed = self._connection.execute(
            update(requests)
            .where(requests.c.id == request.id)
            .values(
                state="waiting",
                not_before=utc(not_before),
                tries=requests.c.tries + 1,
                detail=short(detail, DETAIL_CHARACTERS),
                leased_until=None,
                lease_token=None,
            )
            .returning(requests)
        ).one()
        return request_of(changed)

    def _locked(self, wanted: Select[Any], limit: int) -> list[StoredRequest]:
        """The first requests of a query, locked until this transaction ends; what another one has locked is skipped."""
        rows = self._connection.execute(wanted.limit(limit).with_for_update(skip_locked=True))
        return undamaged(rows, stored_request_of, "request", self._refuse_damaged)

    def _refuse_damaged(self, number: int) -> None:
        """End a request that no hook can act on."""
        ended = {"state": "refused", "detail": "its stored content is damaged", "ended_at": self._clock.now()}
        self._connection.execute(update(requests).where(requests.c.id == number).values(**ended, leased_until=None))


def _lease(request: StoredRequest, token: str, until: datetime) -> Lease:
    return Lease(
        request_id=request.request_id,
        lease_token=token,
        expires_at=until,
        cluster=request.cluster,
        job_id=request.job_id,
        attempt=request.attempt,
        action=request.action,
        exclude_nodes=request.exclude_nodes,
        resume_from=request.resume_from,
        changes=request.changes,
        not_before=request.not_before,
        reasons=request.reasons,
        valid_until=request.expires_at,
        lease_count=request.leases + 1,
        labels={LINEAGE_LABEL: request.lineage, REQUEST_LABEL: request.request_id},
        ask_scheduler=request.ask_scheduler,
        failure_id=request.failure_id,
        user=request.user,
        queue=request.queue,
        ended_before=request.created_at,
    )
