"""Creates requests from advice: waiting, held, or recorded in shadow mode."""

from dataclasses import dataclass, replace
from datetime import datetime

from service.automation.job_ends import DiagnosedAttempt
from service.automation.lineage import checkpoint_of, step_of
from service.automation.time_limits import MAX_END_AGE
from service.contracts.advice import Action, Advice
from service.incidents.shared_resources import SharedResource, storm_resource
from service.jobs.new_job import gpu_hours_lost
from service.recommend import facts_wire
from service.recommend.advise import advise
from service.recommend.facts import Facts, KnownCheckpoint
from service.recommend.policy import Policy
from service.recommend.rule_chain import RESUBMITTING
from service.resubmissions.records import HOLD_TIME, NewAdvice, NewRequest, RequestState


@dataclass(frozen=True, slots=True)
class AdvisedFailure:
    """Advice on one attempt with its facts; `lineage` is the lineage's key, `superseded`: a later attempt has ended."""

    attempt: DiagnosedAttempt
    advice: Advice
    facts: Facts
    lineage: str
    resources: tuple[SharedResource, ...]
    policy: Policy
    superseded: bool = False
    person_holds: bool = False


@dataclass(frozen=True, slots=True)
class _RequestTerms:
    """State and action of the request that follows from an advice."""

    state: RequestState
    action: Action
    held_by: str | None = None
    reasons: tuple[str, ...] = ()


def advice_record(advised: AdvisedFailure, version: int) -> NewAdvice:
    """The record of the advice, with the facts known at the time."""
    facts = advised.facts
    checkpoint = checkpoint_of(advised.attempt)
    if checkpoint is not None and (facts.checkpoint is None or facts.checkpoint.uri != checkpoint):
        facts = replace(facts, checkpoint=replace(facts.checkpoint or KnownCheckpoint(), uri=checkpoint))
    return NewAdvice(
        failure_id=advised.attempt.failure_id,
        version=version,
        policy=advised.advice.policy,
        decision=advised.advice.decision,
        mode=advised.advice.mode,
        step=step_of(advised.attempt),
        facts=facts_wire.changed_facts(facts),
    )


def new_request(advised: AdvisedFailure, version: int, now: datetime) -> NewRequest | None:
    """The request that follows from the advice; None if nothing is done automatically, or it is too late."""
    terms = _terms(advised)
    event, verdict = advised.attempt.event, advised.attempt.verdict
    if terms is None or advised.superseded or now - event.ended_at > MAX_END_AGE:
        return None
    held = terms.state == "held"
    return NewRequest(
        failure_id=advised.attempt.failure_id,
        attempt_id=advised.attempt.attempt_id,
        verdict_version=version,
        cluster=event.cluster,
        job_id=event.job_id,
        attempt=event.attempt,
        user=event.user,
        team=event.team,
        queue=event.queue,
        gpus=event.gpus,
        lineage=advised.lineage,
        side=verdict.side,
        cause=verdict.cause,
        fingerprint=verdict.fingerprint,
        resource=storm_resource(advised.resources),
        state=terms.state,
        origin="policy",
        kind=terms.action.kind,
        plan=terms.action.plan,
        policy=advised.advice.policy,
        not_before=terms.action.not_before or now,
        expires_at=now + HOLD_TIME if held else min(event.ended_at, now) + MAX_END_AGE,
        started_at=event.started_at,
        gpu_hours=gpu_hours_lost(event),
        exclude_nodes=terms.action.exclude_nodes,
        resume_from=terms.action.resume_from,
        changes=terms.action.changes,
        ask_scheduler=terms.action.ask_scheduler,
        reasons=terms.reasons or advised.advice.reasons,
        keys=tuple(resource.key for resource in advised.resources),
        incident_id=advised.advice.incident if terms.held_by == "incident" else None,
        held_by=terms.held_by,
        step=step_of(advised.attempt),
    )


def _terms(advised: AdvisedFailure) -> _RequestTerms | None:
    advice = advised.advice
    if advice.decision in RESUBMITTING and advice.action is not None:
        if advice.mode == "act":
            if advised.person_holds:
                return _RequestTerms("held", advice.action, "person")
            return _RequestTerms("waiting", advice.action)
        return _RequestTerms("shadow", advice.action) if advice.mode == "would_have" else None
    if advice.decision != "hold" or advised.attempt.verdict.abstained:
        return None
    if advice.mode == "act" and advice.action is not None:
        return _RequestTerms("held", advice.action, "person" if advised.person_holds else advice.held_by or "policy")
    return _after_repair(advised)


def _after_repair(advised: AdvisedFailure) -> _RequestTerms | None:
    """The held request of a failure that needs a repair; a person or its incident releases it.

    All other rules (consent, limits, cost) are evaluated as if the repair were done.
    """
    verdict = advised.attempt.verdict
    if verdict.retry_outlook != "after_repair" or advised.advice.action is not None:
        return None
    repaired = replace(verdict, retry_outlook="helps")
    after = advise(repaired, advised.attempt.event.facts(), advised.facts, advised.policy)
    if after.mode != "act" or after.action is None or not (after.decision in RESUBMITTING or after.held_by):
        return None
    held_by = "person" if advised.person_holds else "incident" if advised.facts.incident is not None else "repair"
    return _RequestTerms(
        "held", after.action, held_by, (*advised.advice.reasons, "after the repair: it is resubmitted")
    )
