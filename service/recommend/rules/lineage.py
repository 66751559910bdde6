"""What has happened to this piece of work before: the same failure over and over, ceilings, and the time it has had."""

from datetime import timedelta

from service.recommend.rule_chain import FINE, Asked, Ruling, Standing


class SameFailure:
    """Stops work that fails the same way again without having got any further.

    Not where its turn has come in an incident: many jobs failed this way, so it is not this one's doing, and a probe
    that found the trouble still there must not be punished for it. The ceilings hold all the same.
    """

    name = "same failure again"

    def ask(self, asked: Asked, standing: Standing) -> Ruling:  # noqa: ARG002 - one shape for all rules
        """Progress resets the count: it is taken in the lineage."""
        lineage, most = asked.facts.lineage, asked.policy.limits.same_failure
        if asked.in_turn:
            return FINE
        if lineage.progressed or lineage.same_fingerprint_without_progress < most:
            return FINE
        return Ruling("reached", {"count": lineage.same_fingerprint_without_progress}, decision="stop")


class Ceiling:
    """At most so many automatic resubmits of one lineage; the platform's failures and the user's count apart."""

    name = "resubmits of this job"

    def ask(self, asked: Asked, standing: Standing) -> Ruling:  # noqa: ARG002 - one shape for all rules
        """Stops at the ceiling."""
        limits = asked.policy.limits
        most = limits.user_per_lineage if asked.user_side else limits.infra_per_lineage
        count = asked.facts.lineage.resubmitted(user=asked.user_side)
        if count < most:
            return FINE
        side = "user's" if asked.user_side else "platform's"
        return Ruling("reached", {"count": count, "most": most, "side": side}, decision="stop")


class Window:
    """At most so many automatic resubmits of one lineage within a window; held until the oldest has left it."""

    name = "resubmits of this job in a while"

    def ask(self, asked: Asked, standing: Standing) -> Ruling:  # noqa: ARG002 - one shape for all rules
        """Holds, to be asked again."""
        limits = asked.policy.limits
        most = limits.user_per_window if asked.user_side else limits.infra_per_window
        since = asked.facts.now - timedelta(hours=limits.window_hours)
        count = asked.facts.lineage.resubmitted(user=asked.user_side, since=since)
        if count < most:
            return FINE
        slots = {"count": count, "most": most, "hours": limits.window_hours}
        return Ruling("reached", slots, decision="hold", held_by="window")


class TimeBudget:
    """After so long since a lineage's first failure nothing is tried automatically any more."""

    name = "time budget"

    def ask(self, asked: Asked, standing: Standing) -> Ruling:  # noqa: ARG002 - one shape for all rules
        """Stops when the budget is used up."""
        first, hours = asked.facts.lineage.first_at, asked.policy.limits.total_hours
        if first is None:
            return FINE
        spent = (asked.facts.now - first).total_seconds() / 3600
        if spent < hours:
            return FINE
        return Ruling("spent", {"spent": spent, "hours": hours}, decision="stop")
