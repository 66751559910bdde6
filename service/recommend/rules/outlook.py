"""Whether a failure of this kind is worth retrying: the policy's own rules, evaluated in order."""

from classifiers.contracts import JobFacts, Verdict
from service.recommend.policy_settings import Conditions, Rule
from service.recommend.rule_chain import DecisionState, RuleContext, RuleResult, Trace, apply

PASSED = RuleResult("passed")
SIGNAL_BASE = 128
NONE_APPLIES = RuleResult("none applies", decision="ask")


def matches(code: str | None, patterns: tuple[str, ...]) -> bool:
    """Whether a code is in the list, literally or by a pattern such as `HW.*`."""
    return code is not None and any(
        code == pattern or (pattern.endswith(".*") and code.startswith(pattern[:-1])) for pattern in patterns
    )


def _of_verdict(when: Conditions, verdict: Verdict) -> bool:
    return (
        (when.side is None or verdict.side in when.side)
        and (when.retry_outlook is None or verdict.retry_outlook in when.retry_outlook)
        and (when.cause is None or matches(verdict.cause, when.cause))
        and (when.category is None or matches(verdict.category, when.category))
        and (when.abstained is None or verdict.abstained is when.abstained)
        and (when.disputed is None or verdict.disputed is when.disputed)
        and (when.uncorroborated is None or verdict.uncorroborated is when.uncorroborated)
        and (when.confidence_below is None or verdict.confidence < when.confidence_below)
        and (when.confidence_at_least is None or verdict.confidence >= when.confidence_at_least)
    )


def _exit_code(job: JobFacts) -> int | None:
    """The exit code; a shell reports the end by a signal n as 128 + n, a scheduler as the signal."""
    if job.exit_code is None and job.signal:
        return SIGNAL_BASE + job.signal
    return job.exit_code


def holds(when: Conditions, verdict: Verdict, job: JobFacts, *, suspect_node: bool) -> bool:
    """Whether every condition holds."""
    return (
        (when.status is None or job.status in when.status)
        and (when.exit_code is None or _exit_code(job) in when.exit_code)
        and (when.suspect_node is None or suspect_node is when.suspect_node)
        and _of_verdict(when, verdict)
    )


def evaluate(context: RuleContext, state: DecisionState, trace: Trace | None) -> None:
    """Decide by the first rule whose conditions hold; without such a rule a person decides."""
    suspect_node = bool(context.excluded_nodes)
    for rule in context.policy.rule:
        if holds(rule.when, context.verdict, context.job, suspect_node=suspect_node):
            _decide(rule, state, trace)
            return
        if trace is not None:
            trace.append((rule.name, PASSED, False))
    apply("no rule", NONE_APPLIES, state)
    if trace is not None:
        trace.append(("no rule", NONE_APPLIES, True))


def _decide(rule: Rule, state: DecisionState, trace: Trace | None) -> None:
    state.decision, state.rule = rule.decision, rule.name
    if trace is not None:
        trace.append((rule.name, RuleResult("says", {"says": rule.says}, decision=rule.decision), True))
