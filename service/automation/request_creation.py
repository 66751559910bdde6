"""From advice to a request: what is asked of the hooks, what is held, and what would have been done."""

from dataclasses import dataclass, replace
from datetime import datetime

from service.automation.job_ends import DiagnosedAttempt
from service.automation.lineage import checkpoint_of, step_of
from service.automation.time_limits import HELD_FOR, TOO_OLD
from service.contracts.verdict import Action, Advice
from service.incidents.shared_resources import SharedResource, storm_resource
from service.jobs.new_job import gpu_hours_lost
from service.recommend import facts_wire
from service.recommend.advise import advise
from service.recommend.facts import Facts, KnownCheckpoint
from service.recommend.policy import Policy
from service.recommend.rule_chain import RESUBMITTING
from service.requests.records import NewAdvice, NewRequest, RequestState


@dataclass(frozen=True, slots=True)
class AdvisedFailure:
    """Advice on one subject, with what it stood on; `lineage` is its work's key, `superseded`: it ended again since."""

    subject: DiagnosedAttempt
    advice: Advice
    facts: Facts
    lineage: str
    things: tuple[SharedResource, ...]
    policy: Policy
    superseded: bool = False
    person_holds: bool = False


@dataclass(frozen=True, slots=True)
class _Wanted:
    state: RequestState
    action: Action
    held_by: str | None = None
    reasons: tuple[str, ...] = ()


def stored(advised: AdvisedFailure, version: int) -> NewAdvice:
    """The advice as its own record, with the facts known at the time."""
    facts = advised.facts
    checkpoint = checkpoint_of(advised.subject)
    if checkpoint is not None and (facts.checkpoint is None or facts.checkpoint.uri != checkpoint):
        facts = replace(facts, checkpoint=replace(facts.checkpoint or KnownCheckpoint(), uri=checkpoint))
    return NewAdvice(
        failure_id=advised.subject.failure_id,
        version=version,
        policy=advised.advice.policy,
        decision=advised.advice.decision,
        mode=advised.advice.mode,
        step=step_of(advised.subject),
        facts=facts_wire.changed_facts(facts),
    )


def request(advised: AdvisedFailure, version: int, now: datetime) -> NewRequest | None:
    """What the advice asks for; None where nothing is to be done by itself, or it is too late for it."""
    wanted = _wanted(advised)
    event, verdict = advised.subject.event, advised.subject.verdict
    if wanted is None or advised.superseded or now - event.ended_at > TOO_OLD:
        return None
    waits = wanted.state == "held"
    return NewRequest(
        failure_id=advised.subject.failure_id,
        attempt_id=advised.subject.attempt_id,
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
        resource=storm_resource(advised.things),
        state=wanted.state,
        origin="policy",
        kind=wanted.action.kind,
        plan=wanted.action.plan,
        policy=advised.advice.policy,
        not_before=wanted.action.not_before or now,
        expires_at=now + HELD_FOR if waits else min(event.ended_at, now) + TOO_OLD,
        started_at=event.started_at,
        gpu_hours=gpu_hours_lost(event),
        exclude_nodes=wanted.action.exclude_nodes,
        resume_from=wanted.action.resume_from,
        changes=wanted.action.changes,
        ask_scheduler=wanted.action.ask_scheduler,
        reasons=wanted.reasons or advised.advice.reasons,
        keys=tuple(thing.key for thing in advised.things),
        incident_id=advised.advice.incident if wanted.held_by == "incident" else None,
        held_by=wanted.held_by,
        step=step_of(advised.subject),
    )


def _wanted(advised: AdvisedFailure) -> _Wanted | None:
    advice = advised.advice
    if advice.decision in RESUBMITTING and advice.action is not None:
        if advice.mode == "act":
            if advised.person_holds:
                return _Wanted("held", advice.action, "person")
            return _Wanted("waiting", advice.action)
        return _Wanted("shadow", advice.action) if advice.mode == "would_have" else None
    if advice.decision != "hold" or advised.subject.verdict.abstained:
        return None
    if advice.mode == "act" and advice.action is not None:
        return _Wanted("held", advice.action, "person" if advised.person_holds else advice.held_by or "policy")
    return _after_repair(advised)


def _after_repair(advised: AdvisedFailure) -> _Wanted | None:
    """What waits for a repair is kept, to be let go by a person or with its incident.

    It is asked what would be decided were the repair made: every other rule has its say (consent, ceilings, cost).
    """
    verdict = advised.subject.verdict
    if verdict.retry_outlook != "after_repair" or advised.advice.action is not None:
        return None
    mended = replace(verdict, retry_outlook="helps")
    then = advise(mended, advised.subject.event.facts(), advised.facts, advised.policy)
    if then.mode != "act" or then.action is None or not (then.decision in RESUBMITTING or then.held_by):
        return None
    held_by = "person" if advised.person_holds else "incident" if advised.facts.incident is not None else "repair"
    return _Wanted("held", then.action, held_by, (*advised.advice.reasons, "once repaired: it is resubmitted"))
