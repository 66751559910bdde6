"""From a verdict to advice: ranked mitigations and one decision with the chain of reasons. Pure."""

from dataclasses import replace

from classifiers.contracts import JobFacts, Verdict
from service.contracts.verdict import Action, Advice, Mitigation
from service.recommend import ranking, reasons, resource_changes
from service.recommend.facts import ActionRate, Facts, History, Lineage, OptIn, StormState, SwitchState
from service.recommend.policy import Policy
from service.recommend.rule_chain import RESUBMITTING, Asked, Rule, Standing, Trace, ask_all
from service.recommend.rules import outlook
from service.recommend.rules.consent import ArrayTask, Consent, Dependents, KillSwitch, OwnRetrier
from service.recommend.rules.lineage import Ceiling, SameFailure, TimeBudget, Window
from service.recommend.rules.never import NeverAutomatic
from service.recommend.rules.pause import Pause
from service.recommend.rules.shared import InIncident, Rate, StormBrake
from service.recommend.rules.worth import CostGate, Demoted
from service.recommend.wording import Words, worked_here

# Asked after the policy's own rules, as long as a resubmit is what would be done.
MAY_OBJECT: tuple[Rule, ...] = (
    NeverAutomatic(),
    InIncident(),
    SameFailure(),
    Ceiling(),
    Window(),
    TimeBudget(),
    Demoted(),
    CostGate(),
    StormBrake(),
    Rate(),
    Pause(),
)
# Asked last, where something would be done now or later: whether it may be done automatically.
MAY_FORBID: tuple[Rule, ...] = (OwnRetrier(), ArrayTask(), Dependents(), Consent(), KillSwitch())


def decide(asked: Asked, trace: Trace | None = None) -> Standing:
    """Ask the rules in order; without `trace` no words are kept (for replaying many failures)."""
    standing = Standing()
    outlook.ask(asked, standing, trace)
    if standing.decision == "hold":
        _hold(asked, standing, trace)
    if standing.decision in RESUBMITTING:
        ask_all(MAY_OBJECT, asked, standing, trace)
    if standing.decision in RESUBMITTING or standing.held_by is not None:
        ask_all(MAY_FORBID, asked, standing, trace)
    else:
        standing.mode = "advise"
    return standing


def _hold(asked: Asked, standing: Standing, trace: Trace | None) -> None:
    """A rule holds for a repair: with an incident the job waits for that, and goes when its turn has come."""
    incident = asked.facts.incident
    if incident is not None and incident.turn_at is not None:
        standing.decision = "resubmit_after"  # the probe has shown that the repair is done; every rule is asked
        return
    standing.held_by = "repair"
    ask_all((NeverAutomatic(), InIncident()), asked, standing, trace)


def would_resubmit(verdict: Verdict, job: JobFacts, facts: Facts, policy: Policy) -> bool:
    """Whether this event without any history, as if its job had opted in, is resubmitted."""
    if verdict.retry_outlook == "futile" or verdict.abstained or verdict.disputed:
        return False  # as `NeverAutomatic` would say: most failures are such, and need not be asked about twice
    if not facts.suspicion:  # then the policy's own rules say the same of this event without history
        by_policy = Standing()
        outlook.ask(Asked(verdict, job, facts, policy), by_policy, None)
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
    standing = decide(Asked(verdict, job, alone, policy))
    return standing.decision in RESUBMITTING and standing.mode == "act"


def advise(verdict: Verdict, job: JobFacts, facts: Facts, policy: Policy) -> Advice:
    """Advice for one failure: ranked mitigations, one decision, and the chain of reasons. Pure.

    `policy` is the effective one for the job's cluster, queue and team (`Policy.effective`).
    """
    asked, trace = Asked(verdict, job, facts, policy), Trace()
    standing = decide(asked, trace)
    changes = resource_changes.changes(verdict, job, facts, policy.request)
    acting = standing.decision in RESUBMITTING
    checkpoint = _checkpoint(verdict, facts)
    worked = facts.history.resolved_by
    rules_asked = reasons.in_words(trace)
    if worked:
        rules_asked = (*rules_asked, worked_here(worked))
    slots = {
        "checkpoint": checkpoint or "",
        "user": job.user or "",
        **resource_changes.in_words(changes, facts, job),
    }
    words = Words(verdict, asked.leave_out, slots)
    ranked = ranking.shown(
        verdict,
        facts.history,
        policy.prior_weight,
        resubmitting=acting,
        stopped=standing.decision == "stop",
        larger_request=bool({"memory_bytes", "time_limit_s"} & changes.keys()),
    )
    return Advice(
        mitigations=tuple(
            Mitigation(code, share, words.mitigation(code, worked.get(code, 0))) for code, share in ranked
        ),
        decision=standing.decision,
        resubmit=would_resubmit(verdict, job, facts, policy),
        reasons=tuple(f"{one.name}: {one.said}" for one in rules_asked),
        policy=policy.version,
        exclude_nodes=asked.leave_out,
        action=action(asked, standing, changes, checkpoint) if acting or standing.held_by is not None else None,
        mode=standing.mode,
        incident=None if facts.incident is None else facts.incident.id,
        held_by=standing.held_by,
        rule=standing.rule,
        rules_asked=rules_asked,
        ask_whom=words.whom(),
        changes=changes,
        figures=asked.figures,
    )


def action(asked: Asked, standing: Standing, changes: dict[str, int | float], checkpoint: str | None) -> Action:
    """What a hook would do. A Kubernetes Job can't be started again: a new one is made from it."""
    return Action(
        kind="submit" if asked.job.scheduler == "kubernetes" else "requeue",
        plan=asked.plan,
        exclude_nodes=asked.leave_out,
        resume_from=checkpoint,
        changes=changes,
        not_before=standing.not_before,
        ask_scheduler=asked.facts.opt_in.mode == "scheduler",
    )


def _checkpoint(verdict: Verdict, facts: Facts) -> str | None:
    told = verdict.progress.checkpoint if verdict.progress is not None else None
    return told or (facts.checkpoint.uri if facts.checkpoint is not None else None)
