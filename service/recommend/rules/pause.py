"""The pause before the next resubmit: exponential back-off with jitter."""

from datetime import timedelta
from hashlib import blake2b

from service.recommend.policy_settings import Backoff
from service.recommend.rule_chain import NO_OBJECTION, DecisionState, RuleContext, RuleResult

_SCALE = 2**64


def spread(key: str, number: int) -> float:
    """A number in [-1, 1) that depends only on the lineage and the attempt: equal inputs give equal advice."""
    digest = blake2b(f"{key}\0{number}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return 2 * int.from_bytes(digest, "big") / _SCALE - 1


def pause_s(settings: Backoff, tries: int, key: str, number: int) -> float:
    """Seconds of pause after `tries` earlier resubmits."""
    try:
        grown = settings.base_s * settings.factor**tries
    except OverflowError:
        grown = settings.max_s if settings.base_s else 0.0
    return min(grown, settings.max_s) * (1 + settings.jitter * spread(key, number))


class Pause:
    """No pause if a bad node is excluded for the first time; otherwise a pause that grows with each resubmit."""

    name = "pause"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:
        """Sets the earliest start."""
        lineage = context.facts.lineage
        if context.in_turn:
            return NO_OBJECTION  # jobs of a closed incident are released at its own pace
        tries = 0 if lineage.progressed else len(lineage.resubmits)
        if state.decision == "resubmit_now" and context.excluded_nodes and tries == 0:
            return RuleResult("at once")
        seconds = pause_s(context.policy.backoff, tries, lineage.key, lineage.attempts)
        not_before = context.facts.now + timedelta(seconds=seconds)
        if state.decision == "resubmit_after":
            return RuleResult("wait", {"seconds": seconds}, not_before=not_before)
        return RuleResult("wait", {"seconds": seconds}, decision="resubmit_after", not_before=not_before)
