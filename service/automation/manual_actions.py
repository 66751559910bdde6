"""What people decide by hand: resubmit this one, hold it, never touch it; open, hold, release, close an incident."""

from datetime import timedelta
from typing import Any

from service.automation import incident_probes, notifications
from service.automation.time_limits import TOO_OLD
from service.clock import Clock
from service.db.session import Store, UnitOfWork
from service.errors import Conflict, FieldError
from service.failures.records import FailureDetail
from service.incidents.records import Incident, IncidentKind, NewIncident
from service.incidents.shared_resources import SharedResource
from service.recommend.policy import Policy
from service.requests.records import NewRequest, Request, RequestKind, RequestPlan
from service.requests.repository.lineages import key_of

_OPEN = frozenset({"held", "waiting", "leased"})


def resubmit(store: Store, failure_id: int, by: str, comment: str | None, *, clock: Clock) -> Request:
    """Ask for a resubmit now, whatever the policy says; holds and marks of people are lifted by it.

    Raises:
        NotFound: no such failure.
        Conflict: everything is stopped, a hook is at it, or it was done and its end is not known yet.
    """
    with store.unit_of_work() as work:
        detail = work.failures.get(failure_id)
        switch = work.kill_switch.get()
        if switch.stopped:
            raise Conflict(f"everything was stopped by {switch.by}: start automation first")
        lineage = _lineage(work, detail)
        work.lineages.unmark(lineage)
        now = clock.now()
        row = work.requests.open_rows([lineage]).get(lineage)
        if row is not None:
            if _in_hands(row, clock):
                raise Conflict(f"{row.leased_by} is at it already (request {row.public_id})")
            if row.failure_id == failure_id and row.state != "leased":
                taken = work.requests.take_over(row.public_id, by, expires_at=now + TOO_OLD)
                work.audit_log.append(
                    by, "resubmission.asked", f"failure/{failure_id}", before=row.state, after=comment
                )
                work.outbox.add([notifications.of_request("resubmission.requested", taken, _said(by, comment))])
                return taken
            gone = work.requests.end([row.public_id], "withdrawn", detail=f"{by} asked for another")
            work.outbox.add(notifications.of_requests("resubmission.suppressed", gone, f"{by} asked for another"))
        for one in work.requests.of_failures([failure_id]):
            if one.state in {"done", "unknown"} and one.outcome is None:
                raise Conflict(f"it was resubmitted already (request {one.request_id}); its end is not known yet")
        made = work.requests.add([_by_hand(detail, lineage, by, comment, clock)])
        if not made:
            raise Conflict("somebody else asked for it at the same moment")
        work.audit_log.append(by, "resubmission.asked", f"failure/{failure_id}", after=comment)
        work.outbox.add(notifications.of_requests("resubmission.requested", made, _said(by, comment)))
        return made[0]


def hold(store: Store, failure_id: int, by: str, comment: str | None, *, clock: Clock) -> list[Request]:
    """Hold this piece of work until somebody says resubmit; its requests as they are then.

    Raises:
        NotFound: no such failure.
        Conflict: a hook is at it. One whose lease has run out is not: what it may still say counts all the same.
    """
    with store.unit_of_work() as work:
        detail = work.failures.get(failure_id)
        lineage = _lineage(work, detail)
        row = _held_fast(work, work.requests.open_rows([lineage]).get(lineage))
        if row is not None and _in_hands(row, clock):
            raise Conflict(f"{row.leased_by} is at it already (request {row.public_id})")
        work.lineages.mark(lineage, "hold", by=by, comment=comment)
        work.audit_log.append(by, "failure.held", f"failure/{failure_id}", before=row and row.state, after=comment)
        if row is not None:
            held = work.requests.shelve([row.public_id], "person", leased=True)
            work.outbox.add(notifications.of_requests("resubmission.suppressed", held, f"held by {by}"))
        return work.requests.of_failures([failure_id])


def never(store: Store, failure_id: int, by: str, comment: str | None) -> list[Request]:
    """Nothing automatic for this piece of work any more; what is open is withdrawn, even from a hook's hands.

    Raises:
        NotFound: no such failure.
    """
    with store.unit_of_work() as work:
        detail = work.failures.get(failure_id)
        lineage = _lineage(work, detail)
        work.lineages.mark(lineage, "never", by=by, comment=comment)
        row = work.requests.open_rows([lineage]).get(lineage)
        work.audit_log.append(by, "failure.never", f"failure/{failure_id}", before=row and row.state, after=comment)
        if row is not None:
            gone = work.requests.end([row.public_id], "withdrawn", detail=f"{by} said never")
            work.outbox.add(notifications.of_requests("resubmission.suppressed", gone, f"{by} said never"))
        return work.requests.of_failures([failure_id])


def open_incident(store: Store, cluster: str, kind: IncidentKind, value: str, by: str, comment: str | None) -> Incident:
    """Open one by hand; it holds, without probes, what comes over this shared thing from now on.

    Raises:
        Conflict: it is open already.
    """
    thing = SharedResource(kind, value, cluster)
    with store.unit_of_work() as work:
        incident, made = work.incidents.open(
            NewIncident(
                key=thing.key,
                kind=kind,
                value=value,
                cluster=cluster,
                cause="",
                title=thing.title,
                by=by,
                probe_at=None,
                by_hand=True,
            )
        )
        if not made:
            raise Conflict(f"incident {incident.id} is open over it already")
        if comment:
            work.incidents.note(incident.id, by, "comment", comment)
        work.audit_log.append(
            by, "incident.opened", f"incident/{incident.id}", after={"over": thing.key, "said": comment}
        )
        work.outbox.add([notifications.of_incident("incident.opened", incident, _said(by, comment))])
        return incident


def close_incident(
    store: Store, incident_id: int, by: str, comment: str | None, *, policy: Policy, clock: Clock
) -> Incident:
    """Close it and let what it held go, paced.

    Raises:
        NotFound: no such incident.
        Conflict: it is closed already.
    """
    with store.unit_of_work() as work:
        incident = _open(work, incident_id)
        work.audit_log.append(by, "incident.closed", f"incident/{incident.id}", before=incident.state, after=comment)
        return incident_probes.close(work, incident, _said(by, comment), by, policy=policy, clock=clock)


def hold_incident(store: Store, incident_id: int, by: str, comment: str | None) -> Incident:
    """No probe goes until a person releases or closes it.

    Raises:
        NotFound: no such incident.
        Conflict: it is closed already.
    """
    with store.unit_of_work() as work:
        incident = _open(work, incident_id)
        work.incidents.note(incident.id, by, "held", comment or "no probe is let go")
        work.audit_log.append(by, "incident.held", f"incident/{incident.id}", before=incident.state, after=comment)
        return work.incidents.change(incident.id, by_hand=True)


def release_incident(store: Store, incident_id: int, by: str, comment: str | None, *, clock: Clock) -> Incident:
    """End a person's hold: a probe goes next.

    Raises:
        NotFound: no such incident.
        Conflict: it is closed already.
    """
    with store.unit_of_work() as work:
        incident = _open(work, incident_id)
        work.incidents.note(incident.id, by, "released", comment or "a probe goes next")
        work.audit_log.append(by, "incident.released", f"incident/{incident.id}", before=incident.state, after=comment)
        values: dict[str, Any] = {"by_hand": False}
        if incident.state == "holding":
            values["probe_at"] = clock.now()
        return work.incidents.change(incident.id, **values)


def _open(work: UnitOfWork, incident_id: int) -> Incident:
    incident = work.incidents.hold(incident_id)
    if incident.closed_at is not None:
        raise Conflict(
            f"incident {incident_id} was closed by {incident.closed_by}",
            (FieldError("incident_id", "an open incident", str(incident_id)),),
        )
    return incident


def _in_hands(row: Any, clock: Clock) -> bool:
    """Whether a hook's lease on a stored request is in force."""
    return row.state == "leased" and row.leased_until is not None and row.leased_until > clock.now()


def _held_fast(work: UnitOfWork, row: Any) -> Any:
    """The same request as nobody changes it before this transaction ends; None where it ended meanwhile."""
    if row is None:
        return None
    now = work.requests.row_for_update(row.public_id)
    return now if now.state in _OPEN else None


def _lineage(work: UnitOfWork, detail: FailureDetail) -> str:
    own = (detail.row.cluster, detail.row.job_id)
    known = work.lineages.find([own]).get(own)
    return key_of(*own) if known is None else known.lineage


def _said(by: str, comment: str | None) -> str:
    return f"{by}: {comment}" if comment else f"by {by}"


def _by_hand(detail: FailureDetail, lineage: str, by: str, comment: str | None, clock: Clock) -> NewRequest:
    """What a person's resubmit does: as the advice has it, else the same job again without the suspected nodes."""
    row, wire = detail.row, detail.verdict or {}
    advised = wire.get("action") or {}
    kind: RequestKind = advised.get("action") or ("submit" if row.job_id.count("/") >= 2 else "requeue")  # noqa: PLR2004 - namespace/kind/name
    exclude = tuple(advised.get("exclude_nodes") or wire.get("exclude_nodes") or ())
    plan: RequestPlan = "elsewhere" if exclude else "again"
    now = clock.now()
    own = next((attempt for attempt in detail.attempts if attempt.id == row.id), None)
    return NewRequest(
        failure_id=row.id,
        attempt_id=row.id,
        verdict_version=row.version,
        cluster=row.cluster,
        job_id=row.job_id,
        attempt=row.attempt,
        user=row.user,
        team=row.team,
        queue=row.queue,
        gpus=row.gpus,
        lineage=lineage,
        side=row.side,
        cause=row.cause,
        fingerprint=row.fingerprint,
        resource="",
        state="waiting",
        origin="person",
        kind=kind,
        plan=plan,
        policy=str(wire.get("policy") or ""),
        not_before=now,
        expires_at=now + timedelta(days=1),
        started_at=None if own is None else own.started_at,
        gpu_hours=row.gpu_hours_lost,
        exclude_nodes=exclude,
        resume_from=advised.get("resume_from"),
        changes=advised.get("changes") or {},
        reasons=(_said(by, comment),),
        step=(wire.get("progress") or {}).get("step"),
        asked_by=by,
    )
