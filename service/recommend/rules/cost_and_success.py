"""Rules about the value of a resubmit: expected saving and waste, and the success rate of earlier ones."""

from functools import lru_cache
from math import exp, lgamma, log, log1p

from service.formatting import gpu_hours, percent
from service.recommend.facts import Tally
from service.recommend.rule_chain import NO_OBJECTION, DecisionState, RuleContext, RuleResult

_NONE = Tally()


class LowSuccessRate:
    """Resubmits of a cause whose success rate is credibly too low become advice only, until outcomes improve."""

    name = "measured success"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Limits the mode to advice. Jobs that an incident releases are exempt: the result of its probe counts."""
        if context.in_turn:
            return NO_OBJECTION
        settings = context.policy.demotion
        tally = context.facts.history.under_policy.get(context.plan, _NONE)
        if tally.helped + tally.failed < settings.at_least:
            return NO_OBJECTION
        if below(tally.helped, tally.failed, settings.floor) < settings.credible:
            return NO_OBJECTION
        slots = {"helped": tally.helped, "ended": tally.helped + tally.failed, "floor": percent(settings.floor, 0)}
        return RuleResult("demoted", slots, cap="advise")


class CostGate:
    """Compares expected saved with wasted GPU-hours, from size, time limit, checkpoint, queue and success rate."""

    name = "cost"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Asks a person if it does not pay. The figures are recorded either way."""
        incident = context.facts.incident
        if context.in_turn and incident is not None and not incident.is_probe:
            return RuleResult("shown")
        settings, job = context.policy.cost, context.job
        if not settings.enabled:
            return NO_OBJECTION
        if not job.gpus or job.started_at is None or job.ended_at is None:
            return RuleResult("not known")
        elsewhere = context.verdict.retry_outlook == "helps_elsewhere" or bool(context.excluded_nodes)
        prior = settings.prior_helps_elsewhere if elsewhere else settings.prior_helps
        tally = context.facts.history.resubmits.get(context.plan, _NONE)
        chance = mean(tally, prior * context.verdict.confidence, settings.prior_weight)
        ran = max(0.0, (job.ended_at - job.started_at).total_seconds() / 3600)
        lost = self._lost(context, ran)
        again = max(settings.least_run_hours, lost)
        left = settings.person_hours if job.time_limit_s is None else job.time_limit_s / 3600 - (ran - lost)
        waits = settings.person_hours + (context.facts.queue_wait_s or 0.0) / 3600
        saved = chance * job.gpus * max(settings.least_run_hours, min(left, waits))
        wasted = (1 - chance) * job.gpus * again
        figures = {"success": chance, "saved_gpu_hours": saved, "wasted_gpu_hours": wasted, "redone_hours": lost}
        context.figures.update(figures)
        slots = {
            **figures,
            "success": percent(chance, 0),
            "saved_gpu_hours": gpu_hours(saved),
            "wasted_gpu_hours": gpu_hours(wasted),
            "gpus": job.gpus,
            "most": settings.most_waste_gpu_hours,
        }
        if wasted > settings.most_waste_gpu_hours:
            return RuleResult("too much at stake", slots, decision="ask")
        if saved + settings.person_gpu_hours < settings.least_ratio * wasted:
            return RuleResult("does not pay", slots, decision="ask")
        return RuleResult("pays", slots)

    @staticmethod
    def _lost(context: RuleContext, ran: float) -> float:
        """Hours of work to repeat: since the last checkpoint, or all of them."""
        known, progress = context.facts.checkpoint, context.verdict.progress
        at = known.at if known is not None else None
        if at is None and progress is not None and progress.checkpoint is not None:
            at = progress.at
        if at is None or context.job.ended_at is None:
            return ran
        return min(ran, max(0.0, (context.job.ended_at - at).total_seconds() / 3600))


def mean(tally: Tally, prior: float, weight: float) -> float:
    """The mean of the Beta posterior; `prior` has the weight of `weight` outcomes."""
    return (weight * prior + tally.helped) / (weight + tally.helped + tally.failed)


@lru_cache(maxsize=4096)
def below(helped: int, failed: int, floor: float) -> float:
    """P(rate < floor) with a uniform prior after `helped` and `failed` outcomes: Beta(helped + 1, failed + 1).

    For integer counts the cumulative Beta distribution is a binomial tail: P(Bin(n + 1, floor) > helped).
    """
    if not 0 < floor < 1:
        return 0.0 if floor <= 0 else 1.0
    tries, hit, miss = helped + failed + 1, log(floor), log1p(-floor)
    # By logarithms: the binomial coefficients of some thousand outcomes are beyond a float.
    tail = (
        exp(lgamma(tries + 1) - lgamma(hits + 1) - lgamma(tries - hits + 1) + hits * hit + (tries - hits) * miss)
        for hits in range(helped + 1, tries + 1)
    )
    return min(1.0, sum(tail))
