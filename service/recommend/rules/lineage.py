"""Rules about the lineage of a job: repeated failures, resubmit limits, and the time budget."""

from datetime import timedelta

from service.recommend.rule_chain import NO_OBJECTION, DecisionState, RuleContext, RuleResult


class SameFailure:
    """Stops a lineage that fails the same way again without progress.

    Not applied to jobs that an incident releases: many jobs failed this way, so the job itself is not the reason, and a
    probe that still fails must not be stopped for it. The limits apply all the same.
    """

    name = "same failure again"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Progress resets the count, which is part of the lineage."""
        lineage, most = context.facts.lineage, context.policy.limits.same_failure
        if context.in_turn:
            return NO_OBJECTION
        if lineage.progressed or lineage.same_fingerprint_without_progress < most:
            return NO_OBJECTION
        return RuleResult("reached", {"count": lineage.same_fingerprint_without_progress}, decision="stop")


class Ceiling:
    """Limits the automatic resubmits of one lineage, separately for infrastructure and user failures."""

    name = "resubmits of this job"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Stops at the limit."""
        limits = context.policy.limits
        most = limits.user_per_lineage if context.user_side else limits.infra_per_lineage
        count = context.facts.lineage.resubmitted(user=context.user_side)
        if count < most:
            return NO_OBJECTION
        side = "user's" if context.user_side else "platform's"
        return RuleResult("reached", {"count": count, "most": most, "side": side}, decision="stop")


class Window:
    """Limits the automatic resubmits of one lineage within a window; holds until the oldest has left it."""

    name = "resubmits of this job in a while"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Holds until the window has room again; then `service.automation.housekeeping` releases the request."""
        limits = context.policy.limits
        most = limits.user_per_window if context.user_side else limits.infra_per_window
        since = context.facts.now - timedelta(hours=limits.window_hours)
        count = context.facts.lineage.resubmitted(user=context.user_side, since=since)
        if count < most:
            return NO_OBJECTION
        slots = {"count": count, "most": most, "hours": limits.window_hours}
        return RuleResult("reached", slots, decision="hold", held_by="window")


class TimeBudget:
    """Stops automatic resubmits when the time since the lineage's first failure exceeds the budget."""

    name = "time budget"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Stops when the budget is used up."""
        first, hours = context.facts.lineage.first_at, context.policy.limits.total_hours
        if first is None:
            return NO_OBJECTION
        spent = (context.facts.now - first).total_seconds() / 3600
        if spent < hours:
            return NO_OBJECTION
        return RuleResult("spent", {"spent": spent, "hours": hours}, decision="stop")
