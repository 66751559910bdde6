"""What has happened to this piece of work before: the same failure over and over, ceilings, and the time it has had."""

from datetime import timedelta

from service.recommend.rule_chain import NO_OBJECTION, DecisionState, RuleContext, RuleResult


class SameFailure:
    """Stops work that fails the same way again without having got any further.

    Not where its turn has come in an incident: many jobs failed this way, so it is not this one's doing, and a probe
    that found the trouble still there must not be punished for it. The ceilings hold all the same.
    """

    name = "same failure again"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - one shape for all rules
        """Progress resets the count: it is taken in the lineage."""
        lineage, most = context.facts.lineage, context.policy.limits.same_failure
        if context.in_turn:
            return NO_OBJECTION
        if lineage.progressed or lineage.same_fingerprint_without_progress < most:
            return NO_OBJECTION
        return RuleResult("reached", {"count": lineage.same_fingerprint_without_progress}, decision="stop")


class Ceiling:
    """At most so many automatic resubmits of one lineage; the platform's failures and the user's count apart."""

    name = "resubmits of this job"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - one shape for all rules
        """Stops at the ceiling."""
        limits = context.policy.limits
        most = limits.user_per_lineage if context.user_side else limits.infra_per_lineage
        count = context.facts.lineage.resubmitted(user=context.user_side)
        if count < most:
            return NO_OBJECTION
        side = "user's" if context.user_side else "platform's"
        return RuleResult("reached", {"count": count, "most": most, "side": side}, decision="stop")


class Window:
    """At most so many automatic resubmits of one lineage within a window; held until the oldest has left it."""

    name = "resubmits of this job in a while"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - one shape for all rules
        """Holds, to be context again."""
        limits = context.policy.limits
        most = limits.user_per_window if context.user_side else limits.infra_per_window
        since = context.facts.now - timedelta(hours=limits.window_hours)
        count = context.facts.lineage.resubmitted(user=context.user_side, since=since)
        if count < most:
            return NO_OBJECTION
        slots = {"count": count, "most": most, "hours": limits.window_hours}
        return RuleResult("reached", slots, decision="hold", held_by="window")


class TimeBudget:
    """After so long since a lineage's first failure nothing is tried automatically any more."""

    name = "time budget"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - one shape for all rules
        """Stops when the budget is used up."""
        first, hours = context.facts.lineage.first_at, context.policy.limits.total_hours
        if first is None:
            return NO_OBJECTION
        spent = (context.facts.now - first).total_seconds() / 3600
        if spent < hours:
            return NO_OBJECTION
        return RuleResult("spent", {"spent": spent, "hours": hours}, decision="stop")
