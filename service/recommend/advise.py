"""Advice for a verdict: ranked mitigations and one decision with its chain of reasons. Pure."""

import math
from dataclasses import replace
from datetime import datetime
from typing import Any

from classifiers.contracts import DIAGNOSTIC_KINDS, FLIGHT_RECORDER, JobFacts, Verdict
from service.clock import Clock
from service.contracts.advice import Action, Advice, Mitigation
from service.contracts.event import JobCompletion
from service.recommend import event_facts, ranking, wording
from service.recommend.facts import ActionRate, Facts, History, Lineage, OptIn, StormState, SwitchState
from service.recommend.policy import Policy, built_in
from service.recommend.policy_settings import Requests
from service.recommend.rule_chain import RESUBMITTING, DecisionState, Rule, RuleContext, Trace, evaluate_rules
from service.recommend.rules import outlook
from service.recommend.rules.consent import ArrayTask, Consent, Dependents, KillSwitch, NeverAutomatic, OwnRetrier
from service.recommend.rules.cost_and_success import CostGate, LowSuccessRate
from service.recommend.rules.lineage import Ceiling, SameFailure, TimeBudget, Window
from service.recommend.rules.other_jobs import InIncident, Rate, RetryStormLimit
from service.recommend.rules.pause import Pause
from service.recommend.wording import MitigationWording, worked_here

# Evaluated after the policy's own rules, while the decision is to resubmit.
OBJECTION_RULES: tuple[Rule, ...] = (
    NeverAutomatic(),
    InIncident(),
    SameFailure(),
    Ceiling(),
    Window(),
    TimeBudget(),
    LowSuccessRate(),
    CostGate(),
    RetryStormLimit(),
    Rate(),
    Pause(),
)
# Evaluated last: whether the resubmit may happen automatically.
CONSENT_RULES: tuple[Rule, ...] = (OwnRetrier(), ArrayTask(), Dependents(), Consent(), KillSwitch())
_SUBMITTED_AGAIN = frozenset({"kubernetes", "ray"})  # schedulers


def decide(context: RuleContext, trace: Trace | None = None) -> DecisionState:
    """Evaluate the rules in order; without `trace` no reasons are kept (for replays of many failures)."""
    state = DecisionState()
    outlook.evaluate(context, state, trace)
    if state.decision == "hold":
        _hold(context, state, trace)
    if state.decision in RESUBMITTING:
        evaluate_rules(OBJECTION_RULES, context, state, trace)
    if state.decision in RESUBMITTING or state.held_by is not None:
        evaluate_rules(CONSENT_RULES, context, state, trace)
    else:
        state.mode = "advise"
    return state


def _hold(context: RuleContext, state: DecisionState, trace: Trace | None) -> None:
    """Hold for a repair; a job of an incident is released at its turn instead."""
    incident = context.facts.incident
    if incident is not None and incident.turn_at is not None:
        state.decision = "resubmit_after"  # the probe has shown that the repair is done; all rules are evaluated
        return
    state.held_by = "repair"
    evaluate_rules((NeverAutomatic(), InIncident()), context, state, trace)


def would_resubmit_without_history(verdict: Verdict, job: JobFacts, facts: Facts, policy: Policy) -> bool:
    """Whether this event alone, with an assumed opt-in and no history, would be resubmitted."""
    if verdict.retry_outlook == "futile" or verdict.abstained or verdict.disputed or verdict.uncorroborated:
        return False  # the result of `NeverAutomatic`; most failures end here, which saves evaluating all rules
    if not facts.suspicion:  # the policy's own rules then decide the same for the event without history
        by_policy = DecisionState()
        outlook.evaluate(RuleContext(verdict, job, facts, policy), by_policy, None)
        if by_policy.decision not in RESUBMITTING:
            return False
    alone = replace(
        facts,
        lineage=Lineage(),
        history=History(),
        suspicion={},
        incident=None,
        storm=StormState(),
        rate=ActionRate(),
        switch=SwitchState(),
        opt_in=OptIn("auto", "assumed"),
        retrier=None,
    )
    state = decide(RuleContext(verdict, job, alone, policy))
    return state.decision in RESUBMITTING and state.mode == "act"


def advise(verdict: Verdict, job: JobFacts, facts: Facts, policy: Policy) -> Advice:
    """Advice for one failure: ranked mitigations, one decision, and the chain of reasons. Pure.

    `policy` is the effective policy for the job's cluster, queue and team (`Policy.effective`). `resubmit` of the
    advice is by the built-in one, so that it means the same at every site.
    """
    context, trace = RuleContext(verdict, job, facts, policy), Trace()
    state = decide(context, trace)
    changes = larger_requests(verdict, job, facts, policy.request)
    acting = state.decision in RESUBMITTING
    checkpoint = _checkpoint(verdict, facts)
    worked = facts.history.resolved_by
    evaluated_rules = wording.describe_all(trace)
    if worked:
        evaluated_rules = (*evaluated_rules, worked_here(worked))
    slots = {
        "checkpoint": checkpoint or "",
        "user": job.user or "",
        **text_slots(changes, facts, job),
        "reached": reached_limit(verdict, job) if "time_limit_s" not in changes else "",
    }
    words = MitigationWording(
        verdict, context.excluded_nodes, slots, cancelled=job.status == "cancelled", decision=state.decision
    )
    ranked = ranking.shown(
        verdict,
        facts.history,
        policy.prior_weight,
        resubmitting=acting,
        stopped=state.decision == "stop",
        larger_request=bool({"memory_bytes", "time_limit_s"} & changes.keys()),
    )
    return Advice(
        mitigations=tuple(
            Mitigation(code, share, words.mitigation(code, worked.get(code, 0))) for code, share in ranked
        ),
        decision=state.decision,
        resubmit=would_resubmit_without_history(verdict, job, facts, built_in()),
        reasons=tuple(f"{one.name}: {one.explanation}" for one in evaluated_rules),
        policy=policy.version,
        exclude_nodes=context.excluded_nodes,
        action=action(context, state, changes, checkpoint) if acting or state.held_by is not None else None,
        mode=state.mode,
        incident=None if facts.incident is None else facts.incident.id,
        held_by=state.held_by,
        rule=state.rule,
        evaluated_rules=evaluated_rules,
        ask_whom=words.contact(),
        changes=changes,
        figures=context.figures,
    )


def action(
    context: RuleContext, state: DecisionState, changes: dict[str, int | float], checkpoint: str | None
) -> Action:
    """The action of the hook. A job of Kubernetes or Ray cannot be restarted, so a new one is created from it."""
    return Action(
        kind="submit" if context.job.scheduler in _SUBMITTED_AGAIN else "requeue",
        plan=context.plan,
        exclude_nodes=context.excluded_nodes,
        resume_from=checkpoint,
        changes=changes,
        not_before=state.not_before,
        ask_scheduler=context.facts.opt_in.confirmed_by_hook,
    )


def _checkpoint(verdict: Verdict, facts: Facts) -> str | None:
    from_log = verdict.progress.checkpoint if verdict.progress is not None else None
    return from_log or (facts.checkpoint.uri if facts.checkpoint is not None else None)


GIB = 2**30
HOUR_S = 3600
_DEVICE_MEMORY = "DL.1"
_HOST_MEMORY = "DL.4"


def larger_requests(verdict: Verdict, job: JobFacts, facts: Facts, settings: Requests) -> dict[str, Any]:
    """The requests to change, under the names of the hook protocol: `memory_bytes`, `time_limit_s`, `batch_factor`.

    memory_bytes: after the kernel killed the job for its memory use, in whole GiB. time_limit_s: after a job that made
    progress reached its limit, in whole minutes. batch_factor: of the batch size, after a device ran out of memory.
    """
    out: dict[str, Any] = {}
    killed = job.status == "out_of_memory" or (verdict.category == _HOST_MEMORY and job.signal == 9)  # noqa: PLR2004 - SIGKILL
    if killed and facts.memory_requested:
        out["memory_bytes"] = math.ceil(facts.memory_requested * settings.memory_factor / GIB) * GIB
    progress = verdict.progress
    moving = progress is not None and (progress.step is not None or progress.checkpoint is not None)
    if (
        job.status == "timeout"
        and job.time_limit_s
        and moving
        and verdict.side == "user"
        and not _failed_before(verdict)
    ):
        out["time_limit_s"] = math.ceil(job.time_limit_s * settings.time_factor / 60) * 60
    if verdict.category == _DEVICE_MEMORY and job.status != "out_of_memory":
        out["batch_factor"] = settings.batch_factor
    return out


def _failed_before(verdict: Verdict) -> bool:
    """Whether a job that reached its limit failed of a known error or hung before: it would have reached any limit."""
    return verdict.category is not None or verdict.own_frame is not None or _hung(verdict)


def _hung(verdict: Verdict) -> bool:
    """Whether dumps of the processes show where a job hung."""
    first = next((line for line in verdict.evidence if line.role == "initiating"), None)
    return first is not None and first.stream in {FLIGHT_RECORDER, *DIAGNOSTIC_KINDS}


def reached_limit(verdict: Verdict, job: JobFacts) -> str:
    """The time limit that a job of the user's side reached, where no place in its own code is to blame; else empty.

    A job that hung, as dumps of its processes show, would have reached any limit.
    """
    if job.status != "timeout" or verdict.side != "user" or verdict.own_frame:
        return ""
    if _hung(verdict):
        return ""
    return f"its time limit of {_limit(job.time_limit_s)}" if job.time_limit_s else "its time limit"


def _limit(seconds: float) -> str:
    """A time limit as a person would set it: in hours, a short one in minutes."""
    count, unit = (seconds / 60, "minute") if seconds < HOUR_S else (seconds / HOUR_S, "hour")
    return f"{count:.3g} {unit}" + ("" if f"{count:.3g}" == "1" else "s")


def text_slots(changes: dict[str, Any], facts: Facts, job: JobFacts) -> dict[str, str]:
    """The changes as slots of texts; empty where nothing changes."""
    memory, limit, batch = changes.get("memory_bytes"), changes.get("time_limit_s"), changes.get("batch_factor")
    return {
        "memory": f"{memory / GIB:.0f} GiB" if memory else "",
        "memory_now": f"{facts.memory_requested / GIB:.3g} GiB" if facts.memory_requested else "",
        "time_limit": _limit(limit) if limit else "",
        "time_limit_now": _limit(job.time_limit_s) if job.time_limit_s else "",
        "batch": f"{batch:.0%}" if batch else "",
    }


def advise_without_history(verdict: Verdict, event: JobCompletion, policy: Policy, now: datetime) -> Advice:
    """The advice on one event, by the policy of its cluster, queue and team.

    Args:
        verdict: the verdict on the event.
        event: the event.
        policy: the policy of the whole service.
        now: the time of the advice.
    """
    effective = policy.effective(cluster=event.cluster, queue=event.queue, team=event.team)
    return advise(verdict, event.facts(), event_facts.without_history(event, now, effective), effective)


class Advisor:
    """Gives advice without history, by one policy."""

    def __init__(self, policy: Policy, clock: Clock) -> None:
        self._policy = policy
        self._clock = clock

    def __call__(self, verdict: Verdict, event: JobCompletion) -> Advice:
        """The advice for this verdict and event."""
        return advise_without_history(verdict, event, self._policy, self._clock.now())
