"""Rules about other jobs: incidents, retry storms, and rate limits."""

from service.recommend import recent_activity
from service.recommend.rule_chain import NO_OBJECTION, DecisionState, RuleContext, RuleResult


class InIncident:
    """Jobs of an open incident are held and released in turn."""

    name = "incident"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Holds while the incident is open; a closed incident has no effect."""
        incident = context.facts.incident
        if incident is None:
            return NO_OBJECTION
        slots = {"id": incident.id, "jobs": incident.jobs, "users": incident.users}
        if incident.turn_at is not None:
            text = "probe" if incident.is_probe else "turn"
            return RuleResult(text, slots, decision="resubmit_after", not_before=incident.turn_at)
        if incident.state == "closed":
            return NO_OBJECTION
        return RuleResult("held", slots, decision="hold", held_by="incident")


class RetryStormLimit:
    """Holds a key with too many resubmits of one cause on one resource, or too many that failed again."""

    name = "retry-storm limit"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Holds, and after a pause lets one resubmit start as a trial."""
        if context.in_turn:
            return NO_OBJECTION  # released one by one already
        storm = context.facts.storm
        found = recent_activity.limit_state(storm, context.policy.storm, context.facts.now)
        if found == "calm":
            return NO_OBJECTION
        ended = storm.failed + storm.helped
        slots = {"key": storm.key, "count": storm.resubmits, "failed": storm.failed, "ended": ended}
        if found == "trial":
            return RuleResult("trial", slots)
        return RuleResult(found, slots, decision="hold", held_by="storm")


class Rate:
    """Limits the automatic resubmits of a cluster and of a user within a window."""

    name = "rate"

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:  # noqa: ARG002 - the interface of all rules
        """Holds for now; the rate is checked again when a hook leases the request."""
        rate, limits = context.facts.rate, context.policy.limits
        if rate.cluster >= limits.rate_per_cluster:
            slots = {"count": rate.cluster, "minutes": limits.rate_minutes}
            return RuleResult("cluster", slots, decision="hold", held_by="rate")
        if rate.user >= limits.rate_per_user:
            return RuleResult(
                "user", {"count": rate.user, "minutes": limits.rate_minutes}, decision="hold", held_by="rate"
            )
        return NO_OBJECTION
