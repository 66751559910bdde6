"""The automation service: advice with all facts, requests, leases, outcomes, incidents, and the kill switch."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from service.automation import (
    claims,
    fact_gathering,
    hook_answers,
    housekeeping,
    incident_detection,
    leasing,
    lineage,
    notifications,
    outcome_matching,
    request_creation,
    verdict_revision,
)
from service.automation.job_ends import DiagnosedAttempt, EndedAttempt
from service.automation.manual_actions import ManualActions
from service.automation.request_creation import AdvisedFailure
from service.automation.success_rates import SuccessRateCache
from service.clock import Clock
from service.contracts.advice import Advice
from service.db.session import Store, UnitOfWork
from service.incidents.shared_resources import SharedResource, nodes_to_place, shared_resources_of
from service.nodes.records import NodePlace
from service.recommend import recent_activity
from service.recommend.advise import advise
from service.recommend.facts import Facts
from service.recommend.policy import Policy
from service.resubmissions.records import HookAnswer, Lease, NewRequest, Request
from service.telemetry import Telemetry

log = logging.getLogger(__name__)


class Automation(ManualActions):
    """All automatic and manual actions on failures.

    Methods with a `UnitOfWork` run in the caller's transaction, the others in their own. All of them may be called from
    any number of threads and processes at once.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        super().__init__(store, policy, clock)
        self._telemetry = telemetry
        self._success_rates = SuccessRateCache(clock)

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._policy

    def advise(self, work: UnitOfWork, ends: Sequence[EndedAttempt]) -> dict[int, AdvisedFailure]:
        """Match ends to earlier resubmits, open incidents, and advise on the diagnosed ends, by attempt id.

        If the advice on a failure cannot be made, a person decides; the failure is not lost.
        """
        if not ends:
            return {}
        checked = claims.check(work, {end.attempt_id: end.event for end in ends})
        given = [(end, checked.events[end.attempt_id]) for end in ends]
        ends = [end if event is end.event else replace(end, event=event) for end, event in given]  # few are changed
        lineages = lineage.assign(work, checked)
        if lineages.new_members:
            work.lineages.join(lineages.new_members)
        outcome_matching.match_ends(
            work, ends, lineages, policy=self._policy, clock=self._clock, success_rates=self._success_rates
        )
        attempts = [attempt for end in ends if (attempt := end.diagnosed()) is not None]
        return self._advise(work, attempts, lineages) if attempts else {}

    def advise_revised(self, work: UnitOfWork, end: EndedAttempt) -> AdvisedFailure | None:
        """Advice on a failure whose verdict was revised; its end was matched before."""
        attempt = end.diagnosed()
        if attempt is None:
            return None
        lineages = lineage.assign(work, claims.check(work, {end.attempt_id: end.event}))
        return self._advise(work, [attempt], lineages, revised=True)[end.attempt_id]

    def _advise(
        self,
        work: UnitOfWork,
        attempts: Sequence[DiagnosedAttempt],
        lineages: lineage.LineageAssignment,
        *,
        revised: bool = False,
    ) -> dict[int, AdvisedFailure]:
        now = self._clock.now()
        histories = lineage.histories(work, attempts, lineages)
        resources = _resources(work, attempts)
        incidents = incident_detection.assign_incidents(work, attempts, resources, self._policy, now, revised=revised)
        keys = {member.lineage for member in lineages.by_attempt.values()} if work.lineages.any_marks() else set()
        marks = work.lineages.marks(keys)
        batch = fact_gathering.BatchFacts(
            lineages, histories, resources, incidents, self._success_rates.get(work), marks
        )
        facts = fact_gathering.gather_facts(work, attempts, batch, policy=self._policy, now=now)

        @cache
        def effective_policy(cluster: str, queue: str | None, team: str | None) -> Policy:
            return self._policy.effective(cluster=cluster, queue=queue, team=team)

        advised: dict[int, AdvisedFailure] = {}
        for one in attempts:
            event, key = one.event, lineages.by_attempt[one.attempt_id].lineage
            effective = effective_policy(event.cluster, event.queue, event.team)
            known = facts[one.attempt_id]
            advised[one.attempt_id] = AdvisedFailure(
                attempt=one,
                advice=self._advise_safely(one, known, effective),
                facts=known,
                lineage=key,
                resources=resources[one.attempt_id],
                policy=effective,
                superseded=one.attempt_id in histories.superseded,
                person_holds=key in marks and marks[key][0] == "hold",
            )
        return advised

    def _advise_safely(self, attempt: DiagnosedAttempt, known: Facts, effective: Policy) -> Advice:
        try:
            return advise(attempt.verdict, attempt.event.facts(), known, effective)
        except Exception:  # a rule that fails for one failure must not lose the batch: a person decides on this one
            log.exception("no advice could be made on job %s", attempt.event.job_id)
            return Advice(
                mitigations=(),
                decision="ask",
                resubmit=False,
                reasons=("policy: the rules could not be evaluated; see the log of the service",),
                policy=self._policy.version,
            )

    def store_advice(
        self, work: UnitOfWork, advised: Sequence[tuple[AdvisedFailure, int]], *, revised: bool = False
    ) -> list[Request]:
        """Store advice and the requests that follow from it; returns the new requests.

        Args:
            work: the transaction that stores the verdicts.
            advised: advice with the version of its verdict.
            revised: the verdicts were revised: no request is added for failures that a hook has handled already.
        """
        work.advice_history.add([request_creation.advice_record(one, version) for one, version in advised])
        now = self._clock.now()
        by_lineage: dict[str, NewRequest] = {}
        for one, version in sorted(advised, key=lambda pair: pair[0].attempt.event.ended_at):
            request = request_creation.new_request(one, version, now)
            if request is not None:
                by_lineage[request.lineage] = request
            if request is not None and request.held_by == "storm":  # from now on, unless it is held already
                storm, cluster = one.facts.storm, request.cluster
                work.storms.hold(storm.key, cluster, recent_activity.why_held(storm, one.policy.storm))
        new = list(by_lineage.values())
        if revised and new:
            earlier = work.requests.of_failures({one.failure_id for one in new})
            handled = {one.failure_id for one in earlier if one.leases or one.state in {"done", "unknown"}}
            new = [one for one in new if one.failure_id not in handled]
        added = work.requests.add(new)
        work.outbox.add(
            [
                notifications.of_request("resubmission.requested", one)
                if one.state == "waiting"
                else notifications.of_request("resubmission.suppressed", one, f"held: {one.held_by}")
                for one in added
                if one.state != "shadow"
            ]
        )
        return added

    def withdraw_unsupported(self, work: UnitOfWork, wires: Mapping[int, Mapping[str, Any]]) -> None:
        """Withdraw the requests that revised verdicts no longer support; see `verdict_revision`."""
        verdict_revision.withdraw_unsupported(work, wires)

    def lease(self, hook: str, cluster: str, *, limit: int, seconds: float) -> list[Lease]:
        """Lease the requests that may start now to a hook."""
        return leasing.lease(
            self._store, self._policy, self._clock, hook=hook, cluster=cluster, limit=limit, seconds=seconds
        )

    def ack(self, request_id: str, token: str, answer: HookAnswer) -> Request:
        """Record a hook's answer; see `hook_answers.acknowledge` for the errors."""
        return hook_answers.acknowledge(self._store, request_id, token, answer, clock=self._clock, policy=self._policy)

    def fail(self, request_id: str, token: str, error: str, retry_after_s: float | None) -> Request:
        """Record that a hook could not act; see `hook_answers.fail` for the errors."""
        return hook_answers.fail(self._store, request_id, token, error, retry_after_s, clock=self._clock)

    def tick(self) -> int:
        """Do the periodic work; called every few seconds."""
        return housekeeping.tick(self._store, self._policy, self._clock, self._success_rates)


def _resources(work: UnitOfWork, attempts: Sequence[DiagnosedAttempt]) -> dict[int, tuple[SharedResource, ...]]:
    """The shared resources of each attempt, with the stored places of nodes where the event names none."""
    wanted = {(one.event.cluster, node) for one in attempts for node in nodes_to_place(one.event, one.verdict)}
    rows = work.suspicion.rows(wanted) if wanted else {}
    places: dict[str, dict[str, NodePlace]] = {}
    for (cluster, node), row in rows.items():
        places.setdefault(cluster, {})[node] = row.place
    return {
        one.attempt_id: shared_resources_of(one.event, one.verdict, places.get(one.event.cluster)) for one in attempts
    }
