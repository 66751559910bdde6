"""What a site's labels change: figures of the packaged model alone and with a site layer, on the same test cases.

The site layer is fitted on one set of labelled cases and measured on another; groups that occur in both are left out of
the test. Differences have an interval by a paired bootstrap over groups (Efron and Tibshirani 1993, chapter 16): whole
groups are drawn, since failures of one group are not independent. Recurrences are measured apart: one labelled failure
is learned alone, and its other windows, with other hosts and numbers, are classified.
"""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import numpy as np

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.data.labelled_cases import LabelledCase
from classifiers.diagnoser import Diagnoser
from classifiers.evaluation import baselines, metrics
from classifiers.evaluation.metrics import Answer, Evaluation, answer_of
from classifiers.evaluation.resampling import Floats, Totals, interval
from classifiers.model.artifact import Model
from classifiers.model.case_views import views_of
from classifiers.model.site import fitting
from classifiers.model.site.layer import SiteLayer
from classifiers.signatures import Catalogue

RESAMPLES: Final = 2_000
# Judgement: labelled failures whose recurrences are measured.
RECURRING_CASES: Final = 150
# A window that the labelled failure is recognised by shows where the failure began; the launcher's summary does not.
RECURRING_WINDOWS: Final = frozenset({"whole", "without scheduler facts", "around the first error", "one rank alone"})
# The year of a date stays: a later run is not of the year 2793.
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?![\w.]|[-/]\d\d[-/]\d\d)")
_HOST: Final = re.compile(r"\b([a-z]+(?:-[a-z]+)*-?)(\d{1,4})\b")
_BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure before and after, and the 95 % interval of the difference."""

    before: float
    after: float
    low: float
    high: float

    @property
    def gain(self) -> float:
        """After minus before."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Recurrences of labelled failures: windows, those with the label's side, and with its cause."""

    windows: int
    side: float
    cause: float


@dataclass(slots=True)
class Adaptation:
    """The figures of one comparison.

    Attributes:
        labels: labelled cases that the layer rests on.
        tests: cases that were measured.
        left_out: cases of the test set that share a group with the labels.
        constant: the constant baseline: the most frequent labels of the labelled cases.
        before: the packaged model alone.
        after: the same with the site layer.
        differences: by figure, with intervals.
        recalls: by side, recall before and after.
        recurrence: of labelled failures, None where it was not measured.
        layer: the fitted layer.
    """

    labels: int
    tests: int
    left_out: int
    constant: Evaluation
    before: Evaluation
    after: Evaluation
    differences: dict[str, Difference] = field(default_factory=dict)
    recalls: dict[str, tuple[int, float, float]] = field(default_factory=dict)
    recurrence: Recurrence | None = None
    layer: SiteLayer = field(default_factory=SiteLayer)


def measure(
    model: Model,
    catalogue: Catalogue,
    labels: Sequence[LabelledCase],
    tests: Sequence[LabelledCase],
    *,
    now: datetime,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Adaptation:
    """The figures of a site layer of `labels` on `tests`.

    Args:
        model: the packaged model.
        catalogue: the signatures.
        labels: labelled cases to learn from.
        tests: labelled cases to measure on; those of a labelled group, and labelled cases themselves, are left out.
        now: time of creation of the layer.
        seed: seed of the bootstrap and of made recurrences.
        progress: receives a line of text at each step.

    Raises:
        ValueError: no test case is left.
    """
    groups = {label.group for label in labels}
    # Ids count with their content: those of two sites may be the same.
    known: dict[str, list[RawCase]] = defaultdict(list)
    for label in labels:
        known[label.id].append(label.raw)
    used = [test for test in tests if test.group not in groups and test.raw not in known.get(test.id, ())]
    if not used:
        raise ValueError("expected test cases of groups that have no label, got none")
    progress(f"fitting a site layer on {len(labels)} labels")
    layer = fitting.fit(model, catalogue, labels, now=now).layer
    progress(f"classifying {len(used)} test cases without and with it")
    packaged = Diagnoser(model, catalogue)
    before, after = answers_of_both(packaged, packaged.with_layer(layer), [case.raw for case in used])
    constant = baselines.majority(labels)[:1] * len(used) if labels else baselines.majority(used)
    found = Adaptation(
        len(labels),
        len(used),
        len(tests) - len(used),
        metrics.measure("constant", used, constant),
        metrics.measure("packaged model", used, before),
        metrics.measure("with the site layer", used, after),
        layer=layer,
    )
    found.differences = differences(used, before, after, seed=seed)
    found.recalls = recalls(used, before, after)
    if labels:
        progress("recurrences of labelled failures")
        found.recurrence = recurrence(model, catalogue, labels, now=now, seed=seed)
    return found


def answers(diagnoser: Diagnoser, raws: Sequence[RawCase]) -> list[Answer]:
    """The answers of a diagnoser, in order."""
    return [
        answer_of(one)
        for start in range(0, len(raws), _BATCH)
        for one in diagnoser.diagnose(raws[start : start + _BATCH])
    ]


def answers_of_both(before: Diagnoser, after: Diagnoser, raws: Sequence[RawCase]) -> tuple[list[Answer], list[Answer]]:
    """The answers of two diagnosers that differ in the site layer alone, in order."""
    found: tuple[list[Answer], list[Answer]] = ([], [])
    for start in range(0, len(raws), _BATCH):
        for kept, verdicts in zip(found, before.diagnose_as(after, raws[start : start + _BATCH]), strict=True):
            kept.extend(map(answer_of, verdicts))
    return found


def recalls(
    cases: Sequence[LabelledCase], before: Sequence[Answer], after: Sequence[Answer]
) -> dict[str, tuple[int, float, float]]:
    """By true side: number of cases, recall before and recall after."""
    found: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for case, old, new in zip(cases, before, after, strict=True):
        if case.labels.best["side"] is not None:
            allowed = case.labels.allowed["side"]
            found[case.labels.best["side"]].append((old.labels["side"] in allowed, new.labels["side"] in allowed))
    return {
        side: (len(pairs), sum(old for old, _ in pairs) / len(pairs), sum(new for _, new in pairs) / len(pairs))
        for side, pairs in sorted(found.items())
    }


def differences(
    cases: Sequence[LabelledCase], before: Sequence[Answer], after: Sequence[Answer], *, seed: int = 0
) -> dict[str, Difference]:
    """Accuracy of side and cause, and calibration error of the side, with intervals by a bootstrap over groups."""
    found: dict[str, Difference] = {}
    for axis in ("side", "cause"):
        known = [number for number, one in enumerate(cases) if one.labels.best[axis] is not None]
        if known:
            old, new = [before[row] for row in known], [after[row] for row in known]
            found |= _axis_differences(axis, [cases[row] for row in known], old, new, seed=seed)
    return found


def _axis_differences(
    axis: str, cases: Sequence[LabelledCase], before: Sequence[Answer], after: Sequence[Answer], *, seed: int
) -> dict[str, Difference]:
    totals = Totals([labelled.group for labelled in cases], seed, RESAMPLES)
    counted = np.ones(len(cases), dtype=np.bool_)
    means, errors = [], []
    for given in (before, after):
        right = np.array(
            [one.labels[axis] in case.labels.allowed[axis] for case, one in zip(cases, given, strict=True)], dtype=float
        )
        means.append(totals.means(right, counted))
        errors.append(totals.calibration_errors(np.array([answer.confidence for answer in given]), right, counted))
    found = {axis: _difference(*means)}
    return found | {"ece": _difference(*errors)} if axis == "side" else found


def _difference(before: Floats, after: Floats) -> Difference:
    gains = after - before
    low, high = interval(gains[1:] if len(gains) > 1 else gains)  # cases of one group: the difference alone
    return Difference(float(before[0]), float(after[0]), low, high)


def recurrence(
    model: Model, catalogue: Catalogue, labels: Sequence[LabelledCase], *, now: datetime, seed: int = 0
) -> Recurrence:
    """How often a recurrence takes the label after one label: one failure of each group is learned alone."""
    rng = random.Random(seed)  # noqa: S311 - draws cases to measure
    by_group: dict[str, LabelledCase] = {}
    for label in labels:
        if label.labels.best["side"] is not None and label.labels.best["cause"] is not None:
            by_group.setdefault(label.group, label)
    chosen = list(by_group.values())
    rng.shuffle(chosen)
    sides, causes = [], []
    for case in chosen[:RECURRING_CASES]:
        layer = fitting.fit(model, catalogue, [case], now=now).layer
        windows = [renamed(view.raw, rng) for view in views_of(case) if view.name in RECURRING_WINDOWS]
        for verdict in Diagnoser(model, catalogue, layer).diagnose(windows):
            sides.append(verdict.side == case.labels.best["side"])
            causes.append(verdict.cause == case.labels.best["cause"])
    if not sides:
        return Recurrence(0, float("nan"), float("nan"))
    return Recurrence(len(sides), sum(sides) / len(sides), sum(causes) / len(causes))


def renamed(raw: RawCase, rng: random.Random) -> RawCase:
    """The case with other numbers in its text and other names of hosts, as in a later run."""
    shift = rng.randrange(1, 9)
    job: JobFacts = replace(raw.job, job_id=str(rng.randrange(10**6)), nodes=tuple(map(_other_host, raw.job.nodes)))
    hosts = {old: new for old, new in zip(raw.job.nodes, job.nodes, strict=True) if old != new}

    def text_of(text: str) -> str:
        for old, new in hosts.items():
            text = text.replace(old, new)
        return _NUMBER.sub(lambda found: _other_number(found.group(), shift), text)

    def stream_of(stream: LogStream) -> LogStream:
        text = text_of(stream.text)
        return replace(stream, text=text, windows=() if len(text) != len(stream.text) else stream.windows)

    def event_of(event: NodeEvent) -> NodeEvent:
        return replace(event, text=text_of(event.text), node=hosts.get(event.node or "", event.node))

    return replace(
        raw, job=job, streams=tuple(map(stream_of, raw.streams)), node_events=tuple(map(event_of, raw.node_events))
    )


def _other_host(name: str) -> str:
    return _HOST.sub(lambda found: f"{found.group(1)}{(int(found.group(2)) + 17) % 1000:0{len(found.group(2))}d}", name)


def _other_number(digits: str, shift: int) -> str:
    """Another number of as many digits; small numbers keep their meaning (exit codes, signals, ranks)."""
    if len(digits) < 4:  # noqa: PLR2004 - explained here
        return digits
    return digits[0] + "".join(str((int(digit) + shift) % 10) for digit in digits[1:])
