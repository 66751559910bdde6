"""What another policy would have decided: the pure rules over stored history, in time order. Pure.

Each failure is decided again with the version of the verdict and the facts that were known when it was decided, under
the other policy. What really happened to a resubmit is known only where one was made: where the other policy would not
have made it, its recorded end says what that gains or loses; where it would have made one more, nobody knows how that
would have ended, and it is counted as unknown, never guessed.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from classifiers.contracts import JobFacts, Verdict
from classifiers.taxonomy import Decision
from service.contracts.verdict import Mode
from service.recommend.advise import advise, decide
from service.recommend.facts import Facts, OptIn, Outcome
from service.recommend.policy import Policy
from service.recommend.rule_chain import RESUBMITTING, RuleContext

SHOWN = 200
_BY_POLICY = frozenset({"policy", "nobody opted in"})
_GAINED: frozenset[Outcome] = frozenset({"failed_same", "failed_otherwise"})
_LOST: frozenset[Outcome] = frozenset({"succeeded", "got_past"})


@dataclass(frozen=True, slots=True)
class PastDecision:
    """One decision as it was made.

    `outcome` is how its resubmit ended, None where none was made or its end is not known; `gpu_hours` are those that
    the resubmitted run took, None where not known. `made`: a resubmit was really made.
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


@dataclass(frozen=True, slots=True)
class ChangedDecision:
    """One decision that changes, with the reasons that the other policy gives."""

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
    """What changes. `more` and `fewer` count resubmits; GPU-hours are of runs whose end was recorded.

    `saved`: of resubmits that failed and would not be made. `lost`: of resubmits that helped and would not be made.
    `unknown_more`: resubmits more, which nobody tried. `unknown_fewer`: fewer, whose end or size is not known.
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
    """A decision with what may be done about it, as one word: `hold (act)`."""
    return f"{decision} ({mode})" if decision in RESUBMITTING or mode != "advise" else decision


def _consent(facts: Facts, policy: Policy) -> Facts:
    """Where a policy spoke for the job, it is the other policy that speaks now; its own label stays."""
    if facts.opt_in.source not in _BY_POLICY or facts.opt_in.mode == policy.opt_in.default:
        return facts
    return replace(facts, opt_in=OptIn(policy.opt_in.default, "policy"))


def _resubmits(decision: str, mode: str) -> bool:
    return decision in RESUBMITTING and mode != "advise"


def compare(history: Iterable[PastDecision], policy: Policy, *, shown: int = SHOWN) -> ReplayComparison:
    """Ask the other policy about every decision; reasons are worded for the first `shown` that change only."""
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
    elif past.outcome in _GAINED:
        found.failed_avoided += 1
        found.saved_gpu_hours += past.gpu_hours
    elif past.outcome in _LOST:
        found.helped_lost += 1
        found.lost_gpu_hours += past.gpu_hours


def merged(parts: Iterable[ReplayComparison], *, shown: int = SHOWN) -> ReplayComparison:
    """Several comparisons of one policy, made in parts, as one.

    Raises:
        ValueError: there is no part.
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
