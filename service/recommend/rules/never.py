"""What no policy can make automatic, whatever its rules say."""

from service.recommend.rule_chain import FINE, Asked, Ruling, Standing

_CANCELLED = Ruling("cancelled", cap="advise")
_ABSTAINED = Ruling("abstained", cap="advise")
_DISPUTED = Ruling("disputed", cap="advise")
_FUTILE = Ruling("futile", cap="advise")
_USER = Ruling("user", cap="advise")


class NeverAutomatic:
    """Cancelled jobs, abstained and disputed verdicts, futile failures and what the user has to change."""

    name = "never automatic"

    def ask(self, asked: Asked, standing: Standing) -> Ruling:  # noqa: ARG002 - one shape for all rules
        """Caps the mode at advice."""
        verdict = asked.verdict
        if asked.job.status == "cancelled":
            return _CANCELLED
        if verdict.abstained:
            return _ABSTAINED
        if verdict.disputed:
            return _DISPUTED
        if verdict.retry_outlook == "futile":
            return _FUTILE
        if verdict.side == "user" and verdict.retry_outlook != "helps":
            return _USER
        return FINE
