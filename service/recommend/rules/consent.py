"""Whether anything may be done automatically: another retrier, the owner's word, the kill switch."""

from service.recommend.rule_chain import NO_OBJECTION, DecisionState, RuleContext, RuleResult


class OwnRetrier:
    """A job that something else tries again is left to it."""

    name = "own retrier"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - one shape for all rules
        """Caps the mode at advice."""
        who = context.facts.retrier
        return NO_OBJECTION if who is None else RuleResult("has one", {"who": who}, cap="advise")


class ArrayTask:
    """A task of an array is acted on alone."""

    name = "array task"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - one shape for all rules
        """Says so; decides nothing."""
        return RuleResult("alone") if context.facts.array_task else NO_OBJECTION


class Dependents:
    """Jobs that wait on this one."""

    name = "waiting jobs"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - one shape for all rules
        """Names them; decides nothing."""
        waiting = context.facts.dependents
        return RuleResult("named", {"jobs": ", ".join(waiting)}) if waiting else NO_OBJECTION


class Consent:
    """Nothing is done to a job that nobody opted in."""

    name = "opt-in"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - one shape for all rules
        """Caps the mode at what was consented to."""
        opt_in = context.facts.opt_in
        slots = {"source": opt_in.source}
        if opt_in.mode == "shadow":
            return RuleResult("shadow", slots, cap="would_have")
        if opt_in.mode in {"auto", "scheduler"}:
            return RuleResult(opt_in.mode, slots)
        return RuleResult(opt_in.mode, slots, cap="advise")


class KillSwitch:
    """While it is on nothing is done automatically, anywhere."""

    name = "kill switch"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - one shape for all rules
        """Caps the mode at advice."""
        switch = context.facts.switch
        if not switch.stopped:
            return NO_OBJECTION
        slots = {"by": switch.by or "an operator", "reason": switch.reason or "no reason given"}
        return RuleResult("on", slots, cap="advise")
