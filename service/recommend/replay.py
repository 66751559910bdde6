"""Replay of stored decisions under another policy, in time order. Pure.

Each failure is decided again under the other policy, with the verdict version and the facts of the original decision.
The resubmits that the other policy adds or omits count in the facts of later decisions, so that its limits bind as they
would in operation. The outcome is known only for resubmits that happened: where the other policy would not have
resubmitted, the recorded outcome shows the gain or loss; where it would have resubmitted in addition, the outcome
counts as unknown.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from classifiers.contracts import JobFacts, Verdict
from classifiers.taxonomy import Decision
from service.contracts.advice import FAILED, HELPED, Advice, Mode, Outcome
from service.recommend.advise import advise, decide
from service.recommend.facts import Facts, OptIn
from service.recommend.policy import Policy
from service.recommend.replayed_resubmits import ReplayedCluster, ReplayedResubmit
from service.recommend.rule_chain import RESUBMITTING, DecisionState, RuleContext
from service.recommend.rules.consent import Consent
from service.recommend.rules.lineage import Ceiling, Window
from service.recommend.rules.other_jobs import Rate, RetryStormLimit

SHOWN = 200
LIMITS = frozenset({Ceiling.name, Window.name, RetryStormLimit.name, Rate.name})
_BY_POLICY = frozenset({"policy", "nobody opted in"})


@dataclass(frozen=True, slots=True)
class PastDecision:
    """One stored decision.

    `outcome` is the result of its resubmit, None if there was none or its end is not known; `gpu_hours` are those of
    the resubmitted run, None if not known. `rescued`: the GPU-hours that it rescued. `made`: the resubmit happened.
    """

    failure_id: int
    at: datetime
    cluster: str
    queue: str | None
    team: str | None
    verdict: Verdict
    job: JobFacts
    facts: Facts
    decision: Decision
    mode: Mode
    made: bool = False
    outcome: Outcome | None = None
    gpu_hours: float | None = None
    rescued: float = 0.0


@dataclass(frozen=True, slots=True)
class ChangedDecision:
    """One decision that changes: the deciding rule of the other policy, its reason, and the reasons of all rules."""

    failure_id: int
    at: datetime
    cluster: str
    cause: str
    before: str
    after: str
    outcome: Outcome | None
    gpu_hours: float | None
    reasons: tuple[str, ...]
    rule: str = ""
    reason: str = ""


@dataclass(slots=True)
class ReplayComparison:
    """The changes. `more` and `fewer` count resubmits; GPU-hours are those of runs with a recorded end.

    `saved`: of resubmits that failed and would not happen. `lost`: rescued by resubmits that would not
    happen.
    `limited`: decisions of the other policy that one of its limits holds or stops, by rule.
    `unknown_more`: additional resubmits, whose outcome is unknown. `unknown_fewer`: dropped resubmits with unknown end
    or size.
    """

    policy: str
    decisions: int = 0
    changed: int = 0
    more: int = 0
    fewer: int = 0
    saved_gpu_hours: float = 0.0
    lost_gpu_hours: float = 0.0
    failed_avoided: int = 0
    helped_lost: int = 0
    unknown_more: int = 0
    unknown_fewer: int = 0
    first: datetime | None = None
    last: datetime | None = None
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    causes: Counter[tuple[str, str]] = field(default_factory=Counter)
    limited: Counter[str] = field(default_factory=Counter)
    shown: list[ChangedDecision] = field(default_factory=list)


def named(decision: str, mode: str) -> str:
    """Decision and mode as text: `hold (act)`."""
    return f"{decision} ({mode})" if decision in RESUBMITTING or mode != "advise" else decision


def _consent(facts: Facts, policy: Policy) -> Facts:
    """Consent given by a policy is replaced by that of the other policy; the job's own label stays."""
    if facts.opt_in.source not in _BY_POLICY or facts.opt_in.mode == policy.opt_in.default:
        return facts
    return replace(facts, opt_in=OptIn(policy.opt_in.default, "policy"))


def _resubmits(decision: str, mode: str) -> bool:
    """Whether a decision starts a job; in shadow mode (`would_have`) none is started."""
    return decision in RESUBMITTING and mode == "act"


class Replay:
    """The replay of one policy. Decisions are given in time order, in one or more parts.

    Args:
        policy: the other policy.
    """

    def __init__(self, policy: Policy) -> None:
        self.found = ReplayComparison(policy.version)
        self._policy = policy
        self._clusters: defaultdict[str, ReplayedCluster] = defaultdict(ReplayedCluster)

    def add(self, history: Iterable[PastDecision]) -> None:
        """Decide each of these again."""
        for past in history:
            self._decide(past)

    def _decide(self, past: PastDecision) -> None:
        found, cluster = self.found, self._clusters[past.cluster]
        effective = self._policy.effective(cluster=past.cluster, queue=past.queue, team=past.team)
        facts = cluster.facts(_consent(past.facts, effective), effective, past.verdict.cause, past.job.user)
        context = RuleContext(past.verdict, past.job, facts, effective)
        state = decide(context)
        found.decisions += 1
        found.first = past.at if found.first is None else min(found.first, past.at)
        found.last = past.at if found.last is None else max(found.last, past.at)
        _count(cluster, past, state, context)
        if state.rule in LIMITS and state.mode == "act":
            found.limited[state.rule] += 1
        if state.decision == past.decision and state.mode == past.mode:
            return
        _note(found, past, state.decision, state.mode)
        if len(found.shown) < SHOWN:
            found.shown.append(_changed(past, state, facts, effective))


def compare(history: Iterable[PastDecision], policy: Policy) -> ReplayComparison:
    """Evaluate the other policy on every decision; reasons are rendered only for the first changes."""
    replay = Replay(policy)
    replay.add(history)
    return replay.found


def _count(cluster: ReplayedCluster, past: PastDecision, state: DecisionState, context: RuleContext) -> None:
    """Count a resubmit that the other policy adds or omits, and a key that its retry-storm limit holds."""
    facts = context.facts
    if state.rule == RetryStormLimit.name and state.held_by == "storm":
        cluster.hold(facts.storm.key, past.cluster, facts.now)
    after, before = _resubmits(state.decision, state.mode), _resubmits(past.decision, past.mode)
    if after == (before or past.made):
        return
    one = ReplayedResubmit(
        past.failure_id,
        facts.lineage.key,
        facts.storm.key,
        past.verdict.cause,
        past.job.user,
        past.verdict.side,
        context.plan,
        (state.not_before if after else None) or facts.now,
        past.outcome,
    )
    if after:
        cluster.add(one)
    elif past.made:
        cluster.omit(one)


def _changed(past: PastDecision, state: DecisionState, facts: Facts, policy: Policy) -> ChangedDecision:
    advice = advise(past.verdict, past.job, facts, policy)
    rule = _deciding_rule(past, state, advice)
    matching = [one for one in advice.evaluated_rules if one.name == rule]
    return ChangedDecision(
        past.failure_id,
        past.at,
        past.cluster,
        past.verdict.cause,
        named(past.decision, past.mode),
        named(state.decision, state.mode),
        past.outcome,
        past.gpu_hours,
        advice.reasons,
        rule,
        matching[-1].explanation if matching else "",
    )


def _deciding_rule(past: PastDecision, state: DecisionState, advice: Advice) -> str:
    """The rule that makes the difference.

    If only the mode changes, it is the rule that limits the mode, or else the owner's consent. A new resubmit is
    decided by the policy's own rule for this kind of failure; the rules after it only did not object.
    """
    if state.decision == past.decision:
        return state.mode_rule or Consent.name
    if state.decision in RESUBMITTING and past.decision not in RESUBMITTING:
        return next((one.name for one in advice.evaluated_rules if one.decided), state.rule)
    return state.rule


def _note(found: ReplayComparison, past: PastDecision, decision: Decision, mode: Mode) -> None:
    found.changed += 1
    found.kinds[named(past.decision, past.mode), named(decision, mode)] += 1
    before, after = _resubmits(past.decision, past.mode), _resubmits(decision, mode)
    if after and not before:
        found.more += 1
        found.unknown_more += 1
        found.causes[past.verdict.cause, "more"] += 1
    elif before and not after:
        found.fewer += 1
        found.causes[past.verdict.cause, "fewer"] += 1
        _fewer(found, past)


def _fewer(found: ReplayComparison, past: PastDecision) -> None:
    if not past.made or past.outcome is None or past.outcome == "unknown" or past.gpu_hours is None:
        found.unknown_fewer += 1
    elif past.outcome in FAILED:
        found.failed_avoided += 1
        found.saved_gpu_hours += past.gpu_hours
    elif past.outcome in HELPED:
        found.helped_lost += 1
        found.lost_gpu_hours += past.rescued
