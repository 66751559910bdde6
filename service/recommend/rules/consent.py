"""Whether anything may be done automatically: another retrier, the owner's word, the kill switch."""

from service.recommend.rule_chain import FINE, Asked, Ruling, Standing


class OwnRetrier:
    """A job that something else tries again is left to it."""

    name = "own retrier"

    def ask(self, asked: Asked, standing: Standing) -> Ruling:  # noqa: ARG002 - one shape for all rules
        """Caps the mode at advice."""
        who = asked.facts.retrier
        return FINE if who is None else Ruling("has one", {"who": who}, cap="advise")


class ArrayTask:
    """A task of an array is acted on alone."""

    name = "array task"

    def ask(self, asked: Asked, standing: Standing) -> Ruling:  # noqa: ARG002 - one shape for all rules
        """Says so; decides nothing."""
        return Ruling("alone") if asked.facts.array_task else FINE


class Dependents:
    """Jobs that wait on this one."""

    name = "waiting jobs"

    def ask(self, asked: Asked, standing: Standing) -> Ruling:  # noqa: ARG002 - one shape for all rules
        """Names them; decides nothing."""
        waiting = asked.facts.dependents
        return Ruling("named", {"jobs": ", ".join(waiting)}) if waiting else FINE


class Consent:
    """Nothing is done to a job that nobody opted in."""

    name = "opt-in"

    def ask(self, asked: Asked, standing: Standing) -> Ruling:  # noqa: ARG002 - one shape for all rules
        """Caps the mode at what was consented to."""
        opt_in = asked.facts.opt_in
        slots = {"source": opt_in.source}
        if opt_in.mode == "shadow":
            return Ruling("shadow", slots, cap="would_have")
        if opt_in.mode in {"auto", "scheduler"}:
            return Ruling(opt_in.mode, slots)
        return Ruling(opt_in.mode, slots, cap="advise")


class KillSwitch:
    """While it is on nothing is done automatically, anywhere."""

    name = "kill switch"

    def ask(self, asked: Asked, standing: Standing) -> Ruling:  # noqa: ARG002 - one shape for all rules
        """Caps the mode at advice."""
        switch = asked.facts.switch
        if not switch.stopped:
            return FINE
        slots = {"by": switch.by or "an operator", "reason": switch.reason or "no reason given"}
        return Ruling("on", slots, cap="advise")
