"""Robustness of verdicts against harmless node events and neutral log lines.

Each case is classified without noise and under several conditions: a mix of all reasons with 1 to 200 node events and
disturbed logs, the disturbed logs alone, 200 node events alone, and each reason alone. Counted is how often side and
cause stay, how often a resubmit that was not advised without noise is advised with it, and how often a true fault among
the node events is found again. Intervals are bootstrapped over kinds of failure, since cases of one kind are alike.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from classifiers.case_builder import build_case
from classifiers.composition import node_noise
from classifiers.composition.noise import Noise, add_noise, complete
from classifiers.contracts import RawCase, Verdict
from classifiers.data.labelled_cases import LabelledCase
from classifiers.data.noise_data import REASONS, Use
from classifiers.evaluation.resampling import Estimate, Totals

EVENT_COUNTS: Final = (1, 10, 50, 200)
EVENTS_OF_A_REASON: Final = 10
MIX: Final = "mix"
LOG_LINES: Final = "log lines"
NODE_EVENTS: Final = "node events"

Classify: TypeAlias = Callable[[Sequence[RawCase]], Sequence[Verdict]]
Resubmits: TypeAlias = Callable[[Mapping[str, Any], Verdict], bool]


@dataclass(frozen=True, slots=True)
class Condition:
    """One way of adding noise; `name` is "mix", "log lines", "node events" or a reason, `events` their number."""

    name: str
    events: int
    noise: Noise


@dataclass(frozen=True, slots=True)
class Trial:
    """One case under one condition.

    Attributes:
        case_id: the case.
        kind: its kind of failure.
        condition: the condition.
        side_stays: whether the side is the one without noise.
        cause_stays: whether the cause is.
        resubmit_turned_on: whether a resubmit is advised that is not advised without noise.
        fault_found: whether the cause is right; None unless the case has a true fault among its node events and its
            cause is right without noise.
    """

    case_id: str
    kind: str
    condition: Condition
    side_stays: bool
    cause_stays: bool
    resubmit_turned_on: bool
    fault_found: bool | None


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one condition; `resubmits_turned_on` is a number of cases."""

    name: str
    events: int
    side_stays: Estimate
    cause_stays: Estimate
    resubmits_turned_on: int
    faults_found: Estimate


def conditions(use: Use = "measure", *, by_reason: bool = True) -> list[Condition]:
    """Return all conditions: the mix by number of events, disturbed logs and most events alone, each reason alone."""
    some = [Condition(MIX, count, Noise(use=use, node_events=count)) for count in EVENT_COUNTS]
    some.append(Condition(LOG_LINES, 0, Noise(use=use, node_events=0)))
    most = EVENT_COUNTS[-1]
    some.append(Condition(NODE_EVENTS, most, Noise(use=use, node_events=most, log_blocks=0)))
    if by_reason:
        some += [
            Condition(
                reason,
                EVENTS_OF_A_REASON,
                Noise(use=use, node_events=EVENTS_OF_A_REASON, reasons=(reason,), log_blocks=0),
            )
            for reason in REASONS
        ]
    return some


def sample(cases: Sequence[LabelledCase], count: int, seed: int) -> list[LabelledCase]:
    """Return at most `count` cases of as many kinds as possible, those with node events first, up to a third.

    Each kind and case has its own random number, so that new cases hardly change which others are drawn.
    """
    faults = _one_of_each_kind([case for case in cases if case.raw.node_events], count // 3, seed)
    known = {case.id for case in faults}
    others = [case for case in cases if case.id not in known]
    return faults + _one_of_each_kind(others, count - len(faults), seed)


def trials(
    cases: Sequence[LabelledCase],
    classify: Classify,
    resubmits: Resubmits,
    *,
    seed: int = 0,
    under: Sequence[Condition] | None = None,
) -> list[Trial]:
    """Classify each case without noise and under each condition; the same seed gives the same noise.

    Args:
        cases: labelled cases with their events.
        classify: the classifier, a batch at once.
        resubmits: whether an event with this verdict would be resubmitted.
        seed: of the noise; each case and condition has its own stream of random numbers.
        under: the conditions, None for all.
    """
    plain = [complete(case.event, _rng(seed, case, "complete")) for case in cases]
    before = classify([build_case(event) for event in plain])
    advised = [resubmits(event, verdict) for event, verdict in zip(plain, before, strict=True)]
    done: list[Trial] = []
    for condition in conditions() if under is None else under:
        fitting = [number for number, event in enumerate(plain) if _fits(condition, cases[number], event)]
        noisy = [
            add_noise(
                plain[number],
                _rng(seed, cases[number], f"{condition.name} {condition.events}"),
                _noise(condition, cases[number]),
                root_rank=cases[number].labels.root_rank,
            )
            for number in fitting
        ]
        after = classify([build_case(event) for event in noisy])
        for number, event, verdict in zip(fitting, noisy, after, strict=True):
            turned_on = not advised[number] and resubmits(event, verdict)
            done.append(_trial(cases[number], condition, before[number], verdict, turned_on=turned_on))
    return done


def summarize(done: Sequence[Trial]) -> list[Figures]:
    """Return the figures of each condition, in order of first appearance."""
    by_condition: dict[tuple[str, int], list[Trial]] = {}
    for trial in done:
        by_condition.setdefault((trial.condition.name, trial.condition.events), []).append(trial)
    return [
        Figures(
            name=name,
            events=events,
            side_stays=_share([(outcome.kind, outcome.side_stays) for outcome in some]),
            cause_stays=_share([(outcome.kind, outcome.cause_stays) for outcome in some]),
            resubmits_turned_on=sum(outcome.resubmit_turned_on for outcome in some),
            faults_found=_share(
                [(outcome.kind, outcome.fault_found) for outcome in some if outcome.fault_found is not None]
            ),
        )
        for (name, events), some in by_condition.items()
    ]


def _trial(case: LabelledCase, condition: Condition, before: Verdict, after: Verdict, *, turned_on: bool) -> Trial:
    allowed = case.labels.allowed["cause"]
    is_fault = bool(case.raw.node_events) and before.cause in allowed
    return Trial(
        case_id=case.id,
        kind=case.kind,
        condition=condition,
        side_stays=after.side == before.side,
        cause_stays=after.cause == before.cause,
        resubmit_turned_on=turned_on,
        fault_found=after.cause in allowed if is_fault else None,
    )


def _noise(condition: Condition, case: LabelledCase) -> Noise:
    return replace(condition.noise, log_blocks=0) if _is_report(case) else condition.noise


def _is_report(case: LabelledCase) -> bool:
    """Whether a person wrote the text: it has no lines of a terminal in it."""
    return case.provenance.get("medium") == "report"


def _fits(condition: Condition, case: LabelledCase, event: Mapping[str, Any]) -> bool:
    """Whether a case can have such noise: only a long run has an early part, and only logs are disturbed."""
    if not condition.events:
        return not _is_report(case)
    return node_noise.has_entries(node_noise.job_of(event), condition.noise.use, condition.noise.reasons)


def _share(outcomes: Sequence[tuple[str, bool]]) -> Estimate:
    """A share of cases with its interval: all 0 without cases; the share alone where all cases are of one kind."""
    if not outcomes:
        return Estimate(0.0, 0.0, 0.0, 0)
    kinds, values = zip(*outcomes, strict=True)
    found = Totals(kinds).ratio(values, [True] * len(values))
    return replace(found, low=found.value, high=found.value) if len(set(kinds)) == 1 else found


def _one_of_each_kind(cases: Sequence[LabelledCase], count: int, seed: int) -> list[LabelledCase]:
    """Return cases of different kinds first, then second cases of each kind, and so on."""
    by_kind: dict[str, list[LabelledCase]] = {}
    for case in sorted(cases, key=lambda one: random.Random(f"{seed}/{one.id}").random()):
        by_kind.setdefault(case.kind, []).append(case)
    order = sorted(by_kind, key=lambda kind: random.Random(f"{seed}/{kind}").random())
    chosen: list[LabelledCase] = []
    turn = 0
    while len(chosen) < min(count, len(cases)):
        chosen += [by_kind[kind][turn] for kind in order if turn < len(by_kind[kind])]
        turn += 1
    return chosen[:count]


def _rng(seed: int, case: LabelledCase, name: str) -> random.Random:
    return random.Random(f"{seed}/{case.id}/{name}")
