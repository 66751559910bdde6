"""Rules about what may be automatic: failures that never are, other retriers, the owner's opt-in, the kill switch."""

from classifiers.contracts import Verdict
from service.recommend.rule_chain import NO_OBJECTION, DecisionState, RuleContext, RuleResult


class OwnRetrier:
    """A job that another system retries is not resubmitted."""

    name = "own retrier"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Limits the mode to advice."""
        who = context.facts.retrier
        return NO_OBJECTION if who is None else RuleResult("has one", {"who": who}, cap="advise")


class ArrayTask:
    """Only the failed task of an array is resubmitted."""

    name = "array task"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Adds a note; decides nothing."""
        return RuleResult("alone") if context.facts.array_task else NO_OBJECTION


class Dependents:
    """Jobs that wait for this one."""

    name = "waiting jobs"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Lists them; decides nothing."""
        waiting = context.facts.dependents
        return RuleResult("named", {"jobs": ", ".join(waiting)}) if waiting else NO_OBJECTION


class Consent:
    """A job without opt-in is not resubmitted."""

    name = "opt-in"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Limits the mode to what was consented to."""
        opt_in = context.facts.opt_in
        slots = {"source": opt_in.source}
        if opt_in.mode == "shadow":
            return RuleResult("shadow", slots, cap="would_have")
        if opt_in.mode in {"auto", "scheduler"}:
            return RuleResult(opt_in.mode, slots)
        return RuleResult(opt_in.mode, slots, cap="advise")


class KillSwitch:
    """While the switch is on, nothing is done automatically."""

    name = "kill switch"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Limits the mode to advice."""
        switch = context.facts.switch
        if not switch.stopped:
            return NO_OBJECTION
        slots = {"by": switch.by or "an operator", "reason": switch.reason or "no reason given"}
        return RuleResult("on", slots, cap="advise")


_CANCELLED = RuleResult("cancelled", cap="advise")
_ABSTAINED = RuleResult("abstained", cap="advise")
_DISPUTED = RuleResult("disputed", cap="advise")
_UNCORROBORATED = RuleResult("uncorroborated", cap="advise")
_FUTILE = RuleResult("futile", cap="advise")
_USER = RuleResult("user", cap="advise")


class NeverAutomatic:
    """Cancelled jobs, undecided, disputed or uncorroborated verdicts, and failures that come again or need a fix."""

    name = "never automatic"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Limits the mode to advice."""
        verdict = context.verdict
        if context.job.status == "cancelled":
            return _CANCELLED
        doubt = _doubt(verdict)
        if doubt is not None:
            return doubt
        if verdict.retry_outlook == "futile":
            return _FUTILE
        if verdict.side == "user" and verdict.retry_outlook != "helps":
            return _USER
        return NO_OBJECTION


def _doubt(verdict: Verdict) -> RuleResult | None:
    """The reason why a verdict is too uncertain to act on, None if it is not."""
    if verdict.abstained:
        return _ABSTAINED
    if verdict.disputed:
        return _DISPUTED
    return _UNCORROBORATED if verdict.uncorroborated else None
