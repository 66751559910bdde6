"""Actions of people: stop automation; resubmit, hold or exclude a job; open, hold, release or close an incident."""

from datetime import timedelta

from service.automation import incident_probes, notifications
from service.automation.time_limits import MAX_END_AGE
from service.clock import Clock
from service.contracts.advice import ActionKind, Plan
from service.contracts.kubernetes_name import kubernetes_name
from service.db.session import Store, UnitOfWork
from service.errors import Conflict, FieldError
from service.failures.records import FailureDetail
from service.incidents.records import Incident, IncidentKind, NewIncident
from service.incidents.shared_resources import named_by_person
from service.recommend.policy import Policy
from service.resubmissions.records import OPEN_STATES, NewRequest, Request, StoredRequest, Switch
from service.resubmissions.repository.lineages import key_of


class ManualActions:
    """What people do; each action in a transaction of its own, with its entry in the audit log.

    Args:
        store: the requests, lineages and incidents.
        policy: the policy in force.
        clock: the current time.
    """

    def __init__(self, store: Store, policy: Policy, clock: Clock) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock

    def set_stopped(self, *, stopped: bool, actor: str, reason: str | None = None) -> Switch:
        """Stop all automatic actions, or start them again."""
        with self._store.unit_of_work() as work:
            before = work.kill_switch.get().stopped
            work.audit_log.append(
                actor,
                "automation.turned",
                "automation",
                before={"stopped": before},
                after={"stopped": stopped, "why": reason},
            )
            return work.kill_switch.turn(stopped=stopped, actor=actor, reason=reason)

    def resubmit(self, failure_id: int, actor: str, comment: str | None = None) -> Request:
        """Request a resubmit now, whatever the policy decides; lifts holds and marks on the lineage.

        Raises:
            NotFound: no such failure.
            Conflict: automation is stopped, a hook holds a lease, or an earlier resubmit has not ended yet.
        """
        with self._store.unit_of_work() as work:
            detail = work.failures.get(failure_id)
            switch = work.kill_switch.get()
            if switch.stopped:
                raise Conflict(f"automation was stopped by {switch.by}: start it first")
            lineage = _lineage_of(work, detail)
            work.lineages.unmark(lineage)
            subject, why = f"failure/{failure_id}", _attribution(actor, comment)
            current = _locked(work, work.requests.open_by_lineage([lineage]).get(lineage))
            if current is not None:
                self._check_not_leased(current)
                if current.failure_id == failure_id and current.state != "leased":
                    expires_at = self._clock.now() + MAX_END_AGE
                    released = work.requests.release_for_person(current.request_id, actor, expires_at=expires_at)
                    work.audit_log.append(actor, "resubmission.asked", subject, before=current.state, after=comment)
                    work.outbox.add([notifications.of_request("resubmission.requested", released, why)])
                    return released
                detail_text = f"{actor} requested another resubmit"
                withdrawn = work.requests.end([current.request_id], "withdrawn", detail=detail_text)
                work.outbox.add(notifications.of_requests("resubmission.suppressed", withdrawn, detail_text))
            for earlier in work.requests.of_failures([failure_id]):
                if earlier.state in {"done", "unknown"} and earlier.outcome is None:
                    raise Conflict(
                        f"the job was resubmitted already (request {earlier.request_id}) and has not ended yet"
                    )
            added = work.requests.add([_manual_request(detail, lineage, actor, comment, self._clock)])
            if not added:
                raise Conflict("another resubmit was requested at the same time")
            work.audit_log.append(actor, "resubmission.asked", subject, after=comment)
            work.outbox.add(notifications.of_requests("resubmission.requested", added, why))
            return added[0]

    def hold(self, failure_id: int, actor: str, comment: str | None = None) -> list[Request]:
        """Hold a lineage until a person requests a resubmit; returns the requests of the failure.

        Raises:
            NotFound: no such failure.
            Conflict: a hook holds a valid lease. After an expired lease the hook's answer still counts.
        """
        with self._store.unit_of_work() as work:
            detail = work.failures.get(failure_id)
            lineage = _lineage_of(work, detail)
            current = _locked(work, work.requests.open_by_lineage([lineage]).get(lineage))
            if current is not None:
                self._check_not_leased(current)
            work.lineages.mark(lineage, "hold", actor=actor, comment=comment)
            before = None if current is None else current.state
            work.audit_log.append(actor, "failure.held", f"failure/{failure_id}", before=before, after=comment)
            if current is not None:
                held = work.requests.hold([current.request_id], "person", leased=True)
                work.outbox.add(notifications.of_requests("resubmission.suppressed", held, f"held by {actor}"))
            return work.requests.of_failures([failure_id])

    def never(self, failure_id: int, actor: str, comment: str | None = None) -> list[Request]:
        """Exclude a lineage from automation; its open request is withdrawn, even a leased one.

        Raises:
            NotFound: no such failure.
        """
        with self._store.unit_of_work() as work:
            detail = work.failures.get(failure_id)
            lineage = _lineage_of(work, detail)
            work.lineages.mark(lineage, "never", actor=actor, comment=comment)
            current = work.requests.open_by_lineage([lineage]).get(lineage)
            before = None if current is None else current.state
            work.audit_log.append(actor, "failure.never", f"failure/{failure_id}", before=before, after=comment)
            if current is not None:
                why = f"{actor} excluded the job from automation"
                withdrawn = work.requests.end([current.request_id], "withdrawn", detail=why)
                work.outbox.add(notifications.of_requests("resubmission.suppressed", withdrawn, why))
            return work.requests.of_failures([failure_id])

    def lift(self, failure_id: int, actor: str) -> list[Request]:
        """Lift a person's hold or exclusion of a lineage; a request that was held by it waits again.

        Raises:
            NotFound: no such failure.
        """
        with self._store.unit_of_work() as work:
            lineage = _lineage_of(work, work.failures.get(failure_id))
            mark = work.lineages.marks([lineage]).get(lineage)
            if mark is not None:
                work.lineages.unmark(lineage)
                work.audit_log.append(actor, "failure.lifted", f"failure/{failure_id}", before=mark[0])
                current = _locked(work, work.requests.open_by_lineage([lineage]).get(lineage))
                if current is not None and current.held_by == "person":
                    now = self._clock.now()
                    released = work.requests.release({current.request_id: now}, expires_at=now + MAX_END_AGE)
                    work.outbox.add(
                        notifications.of_requests("resubmission.requested", released, f"hold lifted by {actor}")
                    )
            return work.requests.of_failures([failure_id])

    def open_incident(
        self, cluster: str, kind: IncidentKind, value: str, actor: str, comment: str | None = None
    ) -> Incident:
        """Open an incident without probes; it holds the resubmits of new failures over this resource.

        Raises:
            Conflict: an incident is open over this resource already.
        """
        resource = named_by_person(kind, value, cluster)
        with self._store.unit_of_work() as work:
            incident, created = work.incidents.open(
                NewIncident(
                    key=resource.key,
                    kind=kind,
                    value=resource.value,
                    cluster=cluster,
                    cause="",
                    title=resource.title,
                    by=actor,
                    probe_at=None,
                    by_hand=True,
                )
            )
            if not created:
                raise Conflict(f"incident {incident.id} is open over this resource already")
            if comment:
                work.incidents.note(incident.id, actor, "comment", comment)
            after = {"over": resource.key, "said": comment}
            work.audit_log.append(actor, "incident.opened", f"incident/{incident.id}", after=after)
            work.outbox.add([notifications.of_incident("incident.opened", incident, _attribution(actor, comment))])
            return incident

    def close_incident(self, incident_id: int, actor: str, comment: str | None = None) -> Incident:
        """Close an incident and release its held requests one by one.

        Raises:
            NotFound: no such incident.
            Conflict: it is closed already.
        """
        with self._store.unit_of_work() as work:
            incident = _open_incident(work, incident_id)
            work.audit_log.append(
                actor, "incident.closed", f"incident/{incident.id}", before=incident.state, after=comment
            )
            return incident_probes.close(
                work, incident, _attribution(actor, comment), actor, policy=self._policy, clock=self._clock
            )

    def hold_incident(self, incident_id: int, actor: str, comment: str | None = None) -> Incident:
        """Stop the probes of an incident until a person releases or closes it.

        Raises:
            NotFound: no such incident.
            Conflict: it is closed already.
        """
        with self._store.unit_of_work() as work:
            incident = _open_incident(work, incident_id)
            work.incidents.note(incident.id, actor, "held", comment or "no probe is released")
            work.audit_log.append(
                actor, "incident.held", f"incident/{incident.id}", before=incident.state, after=comment
            )
            return work.incidents.change(incident.id, by_hand=True)

    def release_incident(self, incident_id: int, actor: str, comment: str | None = None) -> Incident:
        """End a person's hold: the next probe is released.

        Raises:
            NotFound: no such incident.
            Conflict: it is closed already.
        """
        with self._store.unit_of_work() as work:
            incident = _open_incident(work, incident_id)
            work.incidents.note(incident.id, actor, "released", comment or "a probe is released next")
            work.audit_log.append(
                actor, "incident.released", f"incident/{incident.id}", before=incident.state, after=comment
            )
            if incident.state == "holding":
                return work.incidents.change(incident.id, by_hand=False, probe_at=self._clock.now())
            return work.incidents.change(incident.id, by_hand=False)

    def _check_not_leased(self, request: StoredRequest) -> None:
        if request.state == "leased" and request.leased_until is not None and request.leased_until > self._clock.now():
            raise Conflict(f"{request.leased_by} is processing it already (request {request.request_id})")


def _open_incident(work: UnitOfWork, incident_id: int) -> Incident:
    incident = work.incidents.get_locked(incident_id)
    if incident.closed_at is not None:
        raise Conflict(
            f"incident {incident_id} was closed by {incident.closed_by}",
            (FieldError("incident_id", "an open incident", str(incident_id)),),
        )
    return incident


def _locked(work: UnitOfWork, request: StoredRequest | None) -> StoredRequest | None:
    """The same request, locked until this transaction ends; None if it ended meanwhile."""
    if request is None:
        return None
    current = work.requests.stored_for_update(request.request_id)
    return current if current.state in OPEN_STATES else None


def _lineage_of(work: UnitOfWork, detail: FailureDetail) -> str:
    job = (detail.row.cluster, detail.row.job_id)
    member = work.lineages.find([job]).get(job)
    return key_of(*job) if member is None else member.lineage


def _attribution(actor: str, comment: str | None) -> str:
    return f"{actor}: {comment}" if comment else f"by {actor}"


def _manual_request(detail: FailureDetail, lineage: str, actor: str, comment: str | None, clock: Clock) -> NewRequest:
    """The advised action; without one, the same job without the suspected nodes."""
    row, wire = detail.row, detail.verdict or {}
    advised = wire.get("action") or {}
    kind: ActionKind = advised.get("action") or ("submit" if kubernetes_name(row.job_id) else "requeue")
    exclude = tuple(advised.get("exclude_nodes") or wire.get("exclude_nodes") or ())
    plan: Plan = "elsewhere" if exclude else "again"
    now = clock.now()
    attempt = next((attempt for attempt in detail.attempts if attempt.id == row.id), None)
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
        started_at=None if attempt is None else attempt.started_at,
        gpu_hours=row.gpu_hours_lost,
        exclude_nodes=exclude,
        resume_from=advised.get("resume_from"),
        changes=advised.get("changes") or {},
        reasons=(_attribution(actor, comment),),
        step=(wire.get("progress") or {}).get("step"),
        asked_by=actor,
    )
