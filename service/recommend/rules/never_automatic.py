"""Failures that no policy can resubmit automatically."""

from classifiers.contracts import Verdict
from service.recommend.rule_chain import NO_OBJECTION, DecisionState, RuleContext, RuleResult

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
