"""Automation as others use it: advice with all that is known, requests, leases, outcomes, incidents, the switch."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from service.automation import (
    housekeeping,
    incident_detection,
    leasing,
    manual_actions,
    notifications,
    outcome_matching,
    verdict_revision,
)
from service.automation import lineage as kin
from service.automation import request_creation as act
from service.automation.fact_gathering import gather_facts
from service.automation.job_ends import DiagnosedAttempt, EndedAttempt
from service.automation.request_creation import AdvisedFailure
from service.automation.success_rates import SuccessRateCache
from service.clock import Clock
from service.contracts.verdict import Advice
from service.db.session import Store, UnitOfWork
from service.incidents.records import Incident, IncidentKind
from service.incidents.shared_resources import shared_resources_of
from service.recommend.advise import advise
from service.recommend.policy import Policy
from service.requests.records import AckResult, Lease, Request, Switch
from service.telemetry import Telemetry

log = logging.getLogger(__name__)


class Automation:
    """Everything that is done, or would have been, about failures by itself.

    What takes a `UnitOfWork` belongs into the transaction of whoever calls it; the rest makes its own. All of it may be
    called from any number of threads and processes at once.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock
        self._telemetry = telemetry
        self._figures = SuccessRateCache(clock)

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._policy

    def advise(self, work: UnitOfWork, ends: Sequence[EndedAttempt]) -> dict[int, AdvisedFailure]:
        """Match these ends to what was resubmitted before, and advise on those that were diagnosed, by attempt id.

        Opens incidents. A failure whose advice can't be made gets a person's decision, and is not lost.
        """
        if not ends:
            return {}
        related = kin.resolve(work, {end.attempt_id: end.event for end in ends})
        if related.joins:
            work.lineages.join(related.joins)
        outcome_matching.ended(work, ends, related, policy=self._policy, clock=self._clock, success_rates=self._figures)
        subjects = [
            DiagnosedAttempt(end.attempt_id, end.failure_id, end.event, end.verdict)
            for end in ends
            if end.verdict is not None and end.failure_id is not None
        ]
        return self._advised(work, subjects, related) if subjects else {}

    def advise_again(self, work: UnitOfWork, end: EndedAttempt) -> AdvisedFailure | None:
        """Advice on a failure whose verdict is another one now; its end was told before."""
        if end.verdict is None or end.failure_id is None:
            return None
        subject = DiagnosedAttempt(end.attempt_id, end.failure_id, end.event, end.verdict)
        related = kin.resolve(work, {end.attempt_id: end.event})
        return self._advised(work, [subject], related, again=True)[end.attempt_id]

    def _advised(
        self,
        work: UnitOfWork,
        subjects: Sequence[DiagnosedAttempt],
        related: kin.LineageAssignment,
        *,
        again: bool = False,
    ) -> dict[int, AdvisedFailure]:
        now = self._clock.now()
        histories = kin.histories(work, subjects, related)
        things = {one.attempt_id: shared_resources_of(one.event, one.verdict) for one in subjects}
        incidents = incident_detection.assign_incidents(work, subjects, things, self._policy, now, revised=again)
        spoken = {joined.lineage for joined in related.of.values()} if work.lineages.any_marks() else set()
        marks = work.lineages.marks(spoken)
        facts = gather_facts(
            work,
            subjects,
            kin=related,
            histories=histories,
            things=things,
            incidents=incidents,
            success_rates=self._figures.get(work),
            marks=marks,
            policy=self._policy,
            now=now,
        )

        @cache
        def effective(cluster: str, queue: str | None, team: str | None) -> Policy:
            return self._policy.effective(cluster=cluster, queue=queue, team=team)

        found: dict[int, AdvisedFailure] = {}
        for one in subjects:
            event, lineage = one.event, related.of[one.attempt_id].lineage
            own = effective(event.cluster, event.queue, event.team)
            known = facts[one.attempt_id]
            found[one.attempt_id] = AdvisedFailure(
                subject=one,
                advice=self._safely(
                    lambda one=one, known=known, own=own: advise(  # type: ignore[misc]  # bound at once
                        one.verdict, one.event.facts(), known, own
                    ),
                    one,
                ),
                facts=known,
                lineage=lineage,
                things=things[one.attempt_id],
                policy=own,
                superseded=one.attempt_id in histories.superseded,
                person_holds=lineage in marks and marks[lineage][0] == "hold",
            )
        return found

    def _safely(self, make: Callable[[], Advice], one: DiagnosedAttempt) -> Advice:
        try:
            return make()
        except Exception:  # a rule that fails on one failure must not lose the batch: a person decides on this one
            log.exception("no advice could be made on job %s", one.event.job_id)
            return Advice(
                mitigations=(),
                decision="ask",
                resubmit=False,
                reasons=("policy: the rules could not be asked; it is in the service's log",),
                policy=self._policy.version,
            )

    def act(
        self, work: UnitOfWork, advised: Sequence[tuple[AdvisedFailure, int]], *, again: bool = False
    ) -> list[Request]:
        """Store the advice beside its verdict's version, and ask for what it says; the requests that were made.

        Args:
            work: the transaction that stores the verdicts.
            advised: advice and the version of the verdict that it is on.
            again: the verdict was revised: nothing is asked for where a hook was at it already.
        """
        work.advice_history.add([act.stored(one, version) for one, version in advised])
        now = self._clock.now()
        wanted = {}
        for one, version in sorted(advised, key=lambda pair: pair[0].subject.event.ended_at):
            asked = act.request(one, version, now)
            if asked is not None:
                wanted[asked.lineage] = asked
        new = list(wanted.values())
        if again and new:
            before = work.requests.of_failures({one.failure_id for one in new})
            touched = {one.failure_id for one in before if one.leases or one.state in {"done", "unknown"}}
            new = [one for one in new if one.failure_id not in touched]
        made = work.requests.add(new)
        work.outbox.add(
            [
                notifications.of_request("resubmission.requested", one)
                if one.state == "waiting"
                else notifications.of_request("resubmission.suppressed", one, f"held: {one.held_by}")
                for one in made
                if one.state != "shadow"
            ]
        )
        return made

    def revised(self, work: UnitOfWork, failure_id: int, wire: Mapping[str, Any]) -> None:
        """A verdict was revised (by late logs, other evidence or a person): see `verdict_revision`."""
        verdict_revision.revised(work, failure_id, wire)

    def lease(self, hook: str, cluster: str, *, limit: int, seconds: float) -> list[Lease]:
        """Give a hook what may go now."""
        return leasing.lease(
            self._store, self._policy, self._clock, hook=hook, cluster=cluster, limit=limit, seconds=seconds
        )

    def ack(
        self,
        request_id: str,
        token: str,
        result: AckResult,
        *,
        new_job_id: str | None = None,
        detail: str | None = None,
    ) -> Request:
        """Take a hook's answer; see `leasing.ack` for what is raised."""
        return leasing.ack(
            self._store,
            request_id,
            token,
            result,
            new_job_id=new_job_id,
            detail=detail,
            clock=self._clock,
            policy=self._policy,
        )

    def fail(self, request_id: str, token: str, error: str, retry_after_s: float | None) -> Request:
        """A hook could not act; see `leasing.fail` for what is raised."""
        return leasing.fail(self._store, request_id, token, error, retry_after_s, clock=self._clock)

    def turn(self, *, stopped: bool, by: str, reason: str | None = None) -> Switch:
        """Stop everything, or let it go on."""
        with self._store.unit_of_work() as work:
            before = work.kill_switch.get().stopped
            work.audit_log.append(
                by,
                "automation.turned",
                "automation",
                before={"stopped": before},
                after={"stopped": stopped, "why": reason},
            )
            return work.kill_switch.turn(stopped=stopped, by=by, reason=reason)

    def resubmit(self, failure_id: int, by: str, comment: str | None = None) -> Request:
        """A person asks for a resubmit now."""
        return manual_actions.resubmit(self._store, failure_id, by, comment, clock=self._clock)

    def hold(self, failure_id: int, by: str, comment: str | None = None) -> list[Request]:
        """A person holds a piece of work."""
        return manual_actions.hold(self._store, failure_id, by, comment, clock=self._clock)

    def never(self, failure_id: int, by: str, comment: str | None = None) -> list[Request]:
        """A person forbids a piece of work to automation."""
        return manual_actions.never(self._store, failure_id, by, comment)

    def open_incident(
        self, cluster: str, kind: IncidentKind, value: str, by: str, comment: str | None = None
    ) -> Incident:
        """A person opens an incident."""
        return manual_actions.open_incident(self._store, cluster, kind, value, by, comment)

    def close_incident(self, incident_id: int, by: str, comment: str | None = None) -> Incident:
        """A person closes one: what it held is let go, paced."""
        return manual_actions.close_incident(
            self._store, incident_id, by, comment, policy=self._policy, clock=self._clock
        )

    def hold_incident(self, incident_id: int, by: str, comment: str | None = None) -> Incident:
        """A person holds one: no probe goes."""
        return manual_actions.hold_incident(self._store, incident_id, by, comment)

    def release_incident(self, incident_id: int, by: str, comment: str | None = None) -> Incident:
        """A person ends a hold: a probe goes next."""
        return manual_actions.release_incident(self._store, incident_id, by, comment, clock=self._clock)

    def tick(self) -> int:
        """Do what time alone brings; called every few seconds."""
        return housekeeping.tick(self._store, self._policy, self._clock, self._figures)
