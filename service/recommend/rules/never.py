"""Failures that no policy can resubmit automatically."""

from service.recommend.rule_chain import NO_OBJECTION, DecisionState, RuleContext, RuleResult

_CANCELLED = RuleResult("cancelled", cap="advise")
_ABSTAINED = RuleResult("abstained", cap="advise")
_DISPUTED = RuleResult("disputed", cap="advise")
_FUTILE = RuleResult("futile", cap="advise")
_USER = RuleResult("user", cap="advise")


class NeverAutomatic:
    """Cancelled jobs, undecided or disputed verdicts, recurring failures, and failures that the user has to fix."""

    name = "never automatic"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Limits the mode to advice."""
        verdict = context.verdict
        if context.job.status == "cancelled":
            return _CANCELLED
        if verdict.abstained:
            return _ABSTAINED
        if verdict.disputed:
            return _DISPUTED
        if verdict.retry_outlook == "futile":
            return _FUTILE
        if verdict.side == "user" and verdict.retry_outlook != "helps":
            return _USER
        return NO_OBJECTION
