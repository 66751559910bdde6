"""Replay of stored decisions under another policy, in time order. Pure.

Each failure is decided again under the other policy, with the verdict version and the facts of the original decision.
The outcome is known only for resubmits that happened: where the other policy would not have resubmitted, the recorded
outcome shows the gain or loss; where it would have resubmitted in addition, the outcome counts as unknown.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from classifiers.contracts import JobFacts, Verdict
from classifiers.taxonomy import Decision
from service.contracts.advice import Mode
from service.contracts.resubmission import FAILED, HELPED, Outcome
from service.recommend.advise import advise, decide
from service.recommend.facts import Facts, OptIn
from service.recommend.policy import Policy
from service.recommend.rule_chain import RESUBMITTING, RuleContext

SHOWN = 200
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
    """One decision that changes, with the reasons under the other policy."""

    failure_id: int
    at: datetime
    cluster: str
    cause: str
    before: str
    after: str
    outcome: Outcome | None
    gpu_hours: float | None
    reasons: tuple[str, ...]


@dataclass(slots=True)
class ReplayComparison:
    """The changes. `more` and `fewer` count resubmits; GPU-hours are those of runs with a recorded end.

    `saved`: of resubmits that failed and would not happen. `lost`: rescued by resubmits that would not
    happen.
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
    return decision in RESUBMITTING and mode != "advise"


def compare(history: Iterable[PastDecision], policy: Policy, *, shown: int = SHOWN) -> ReplayComparison:
    """Evaluate the other policy on every decision; reasons are rendered only for the first `shown` changes."""
    found = ReplayComparison(policy.version)
    for past in history:
        effective = policy.effective(cluster=past.cluster, queue=past.queue, team=past.team)
        facts = _consent(past.facts, effective)
        state = decide(RuleContext(past.verdict, past.job, facts, effective))
        found.decisions += 1
        found.first = past.at if found.first is None else min(found.first, past.at)
        found.last = past.at if found.last is None else max(found.last, past.at)
        if state.decision == past.decision and state.mode == past.mode:
            continue
        _note(found, past, state.decision, state.mode)
        if len(found.shown) < shown:
            reasons = advise(past.verdict, past.job, facts, effective).reasons
            found.shown.append(
                ChangedDecision(
                    past.failure_id,
                    past.at,
                    past.cluster,
                    past.verdict.cause,
                    named(past.decision, past.mode),
                    named(state.decision, state.mode),
                    past.outcome,
                    past.gpu_hours,
                    reasons,
                )
            )
    return found


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


def merged(parts: Iterable[ReplayComparison], *, shown: int = SHOWN) -> ReplayComparison:
    """Merge partial comparisons of the same policy.

    Raises:
        ValueError: there are no parts.
    """
    whole: ReplayComparison | None = None
    for part in parts:
        if whole is None:
            whole = part
            continue
        for name in _SUMMED:
            setattr(whole, name, getattr(whole, name) + getattr(part, name))
        whole.kinds += part.kinds
        whole.causes += part.causes
        times = [at for at in (whole.first, whole.last, part.first, part.last) if at is not None]
        whole.first, whole.last = min(times, default=None), max(times, default=None)
        whole.shown += part.shown
    if whole is None:
        raise ValueError("nothing to merge")
    whole.shown = sorted(whole.shown, key=lambda one: (one.at, one.failure_id))[:shown]
    return whole


_SUMMED = (
    *("decisions", "changed", "more", "fewer", "saved_gpu_hours", "lost_gpu_hours"),
    *("failed_avoided", "helped_lost", "unknown_more", "unknown_fewer"),
)
