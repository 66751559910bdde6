"""Measured rates of right and wrong verdicts by true cause, as data for a simulator or for who sets a policy.

Measured on held-out cases (`evaluation.held_out`), never on what a model was fitted on, over the views of each case:
whole logs, tails, the first error alone, one rank alone, without the scheduler's facts. Each kind of failure has the
same weight, however many cases of it there are. A file `faultline-measured/1`:

    {
      "schema": "faultline-measured/1", "model": "...", "data": "<digest of what is trained on>",
      "splits": "by kind",                        # or by family, by source
      "cases": 5825, "kinds": 2009, "windows": 11004, "threshold": 0.61,
      "bins": [0.0, 0.1, ... 1.0],               # edges of confidence
      "causes": {
        "HW.GPU.1": {                             # the true cause
          "cases": 120, "kinds": 14,
          "weak": false,                          # fewer than ten cases
          "side": {"hardware": 0.97, ...},        # what the verdict says, shares that sum to 1
          "cause": {"HW.GPU.1": 0.91, ...},
          "retry": {"helps_elsewhere": 0.93, ...},
          "truth": {"helps_elsewhere": 1.0},      # the true retry outlook
          "abstained": 0.04,
          "right": 0.97,                          # side right, among all
          "confidence": [0.0, 0.01, ...],         # share of verdicts in each bin
          "right_by_confidence": [null, 0.5, ...],# side right in each bin, null where the bin is empty
          "outcomes": [                           # the same jointly, most frequent first
            {"truth": "helps_elsewhere", "cause": "HW.GPU.1", "retry": "helps_elsewhere", "abstained": false,
             "confidence": 0.97, "share": 0.9}, ...]
        }, ...
      }
    }
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from classifiers import taxonomy
from classifiers.data.labelled_cases import WEAK_CLASS, LabelledCase
from classifiers.evaluation.metrics import BINS, Answer

SCHEMA: Final = "faultline-measured/1"
_OUTCOMES_LIMIT: Final = 40
_DIGITS: Final = 4

# A case, the answer to one of its views, and that view's share of the case.
WeightedAnswer: TypeAlias = tuple[LabelledCase, Answer, float]


def _shares(counts: Mapping[str, float]) -> dict[str, float]:
    total = sum(counts.values()) or 1.0
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {name: round(value / total, _DIGITS) for name, value in ordered}


def _bin(confidence: float) -> int:
    return min(BINS - 1, max(0, int(confidence * BINS)))


def _of_cause(answers: Sequence[WeightedAnswer]) -> dict[str, Any]:
    axes: dict[str, Counter[str]] = {axis: Counter() for axis in ("side", "cause", "retry", "truth")}
    total_of_bin, right = [0.0] * BINS, [0.0] * BINS
    joint: dict[tuple[str, str, str, bool], list[float]] = defaultdict(lambda: [0.0, 0.0])
    abstained = 0.0
    for case, answer, weight in answers:
        truth = case.labels.best["retry"] or ""
        for axis in ("side", "cause", "retry"):
            axes[axis][answer.labels[axis]] += weight  # type: ignore[assignment] # Counter of floats
        axes["truth"][truth] += weight  # type: ignore[assignment]
        abstained += weight * answer.abstained
        place = _bin(answer.confidence)
        total_of_bin[place] += weight
        right[place] += weight * (answer.labels["side"] in case.labels.allowed["side"])
        found = joint[truth, answer.labels["cause"], answer.labels["retry"], answer.abstained]
        found[0] += weight
        found[1] += weight * answer.confidence
    total = sum(weight for *_, weight in answers)
    ordered = sorted(joint.items(), key=lambda item: (-item[1][0], item[0]))
    cases = len({case.id for case, *_ in answers})
    return {
        "cases": cases,
        "kinds": len({case.kind for case, *_ in answers}),
        "weak": cases < WEAK_CLASS,
        **{axis: _shares(counted) for axis, counted in axes.items()},
        "abstained": round(abstained / total, _DIGITS),
        "right": round(sum(right) / total, _DIGITS),
        "confidence": [round(weight / total, _DIGITS) for weight in total_of_bin],
        "right_by_confidence": [
            round(one / whole, _DIGITS) if whole else None for one, whole in zip(right, total_of_bin, strict=True)
        ],
        "outcomes": [
            {
                "truth": truth,
                "cause": cause,
                "retry": retry,
                "abstained": is_abstained,
                "confidence": round(confidence / weight, _DIGITS),
                "share": round(weight / total, _DIGITS),
            }
            for (truth, cause, retry, is_abstained), (weight, confidence) in ordered[:_OUTCOMES_LIMIT]
        ],
    }


def tables(
    answers: Sequence[WeightedAnswer],
    cases: Sequence[LabelledCase],
    *,
    model: str,
    data: str,
    threshold: float,
    unit: str = "kind",
) -> dict[str, Any]:
    """The content of the file, of answers to cases whose `unit` was held out.

    `data` is the digest of the cases that a model of all of them is trained on: these cases, with noise among them.
    """
    per_kind = Counter(case.kind for case in cases)
    by_cause: dict[str, list[WeightedAnswer]] = defaultdict(list)
    for case, answer, weight in answers:
        if case.labels.best["cause"] is not None:
            by_cause[case.labels.best["cause"]].append((case, answer, weight / per_kind[case.kind]))
    return {
        "schema": SCHEMA,
        "model": model,
        "data": data,
        "splits": f"by {unit}",
        "cases": len(cases),
        "kinds": len(per_kind),
        "windows": len(answers),
        "threshold": round(threshold, _DIGITS),
        "bins": [round(place / BINS, 2) for place in range(BINS + 1)],
        "causes": {code: _of_cause(by_cause[code]) for code in taxonomy.load().causes if by_cause[code]},
    }
