"""Measures verdicts against labelled cases: per class, calibrated or not, how much is answered; beside two baselines.

A label counts as right if it is in the case's list of labels that experts could defend (`*_ok`). Baselines: `majority`
always gives the most frequent labels of the cases measured (the best a constant can do), `signatures` the catalogue's
votes alone.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import orjson

from classifiers import taxonomy
from classifiers.case_builder import build_case
from classifiers.contracts import LogStream, RawCase, Verdict
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import AXES, NONE, DatasetError, LabelledCase, Labels
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.report_detection import is_report
from classifiers.extraction.scan import Scanner, tidy
from classifiers.model import label_fusion
from classifiers.model.label_fusion import NONE as NO_LABEL
from classifiers.signatures import Catalogue

WEAK_CLASS: Final = 10
BINS: Final = 10
_STATUS: Final = {"oom_killed": "out_of_memory", "pending": "failed"}


@dataclass(frozen=True, slots=True)
class Answer:
    """Predicted labels of one case with the confidence of the side, whoever predicted."""

    labels: Mapping[str, str]
    top: Mapping[str, tuple[str, ...]]
    confidence: float = 1.0
    abstained: bool = False
    rank: int | None = None
    initiating: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One class of an axis: cases with it, precision, recall and F1."""

    code: str
    cases: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class AxisFigures:
    """One axis: cases measured, share right, macro-F1, per class, and what was taken for what (truth, got) → cases."""

    axis: str
    cases: int
    accuracy: float
    top3: float
    macro_f1: float
    classes: tuple[ClassRow, ...]
    confusion: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Mistake:
    """One wrong side or cause, told with how sure the verdict was."""

    id: str
    kind: str
    truth: str
    got: str
    confidence: float
    line: str


@dataclass(slots=True)
class Evaluation:
    """All figures of one predictor on one set of cases.

    `by_medium`: by medium (log, report) and axis the share right and cases measured.
    `root_rank`, `root_line`: share right and cases measured; `many_rank`, `many_line` those of several ranks alone.
    """

    name: str
    cases: int
    axes: dict[str, AxisFigures] = field(default_factory=dict)
    ece: float = 0.0
    auroc: float = float("nan")
    answered: float = 1.0
    right_when_answered: float = 0.0
    reliability: list[tuple[float, float, int]] = field(default_factory=list)
    coverage: list[tuple[float, float]] = field(default_factory=list)
    root_rank: tuple[float, int] = (0.0, 0)
    root_line: tuple[float, int] = (0.0, 0)
    many_rank: tuple[float, int] = (0.0, 0)
    many_line: tuple[float, int] = (0.0, 0)
    mistakes: list[Mistake] = field(default_factory=list)
    weak: dict[str, dict[str, int]] = field(default_factory=dict)
    by_medium: dict[str, dict[str, tuple[float, int]]] = field(default_factory=dict)


def from_measured(raw: Mapping[str, Any], place: str) -> LabelledCase:
    """A case of the flat format for measuring: id, group, event, log, side, side_ok, cause, cause_ok ..., as labelled.

    An axis that is absent, or that a case's `set` leaves out (a `symptom` case has no trusted cause), is not measured.

    Raises:
        DatasetError: a field is missing or not as asked.
    """
    for key in ("id", "log"):
        if not isinstance(raw.get(key), str):
            raise DatasetError(place, key, "a text", raw.get(key))
    known = raw.get("event") or {}
    status = known.get("status", "failed")
    event: dict[str, Any] = {"status": _STATUS.get(status, status), "logs": [{"rank": 0, "tail": raw["log"]}]}
    for key in ("exit_code", "signal", "scheduler", "reason", "framework"):
        if known.get(key) is not None:
            event[key] = known[key]
    if known.get("n_gpus"):
        event["gpus"] = known["n_gpus"]
    if known.get("n_nodes"):
        event["nodes"] = [f"node{number}" for number in range(1, known["n_nodes"] + 1)]
    only_symptom = raw.get("set") == "symptom"
    best: dict[str, str | None] = {}
    allowed: dict[str, tuple[str, ...]] = {}
    for axis in AXES:
        label = raw.get(axis)
        left_out = (only_symptom and axis in {"side", "cause", "retry"}) or (not only_symptom and axis == "symptom")
        best[axis] = None if left_out else label
        allowed[axis] = () if left_out or label is None else tuple(raw.get(f"{axis}_ok") or [label])
    return LabelledCase(
        id=raw["id"],
        group=str(raw.get("group") or raw["id"]),
        kind=str(raw.get("group") or raw["id"]),
        raw=build_case(event),
        labels=Labels(best=best, allowed=allowed, root_rank=raw.get("root_rank"), root_line=raw.get("root_line")),
        provenance={"origin": "measured"},
        event=event,
    )


def read_cases(data: bytes, name: str) -> list[LabelledCase]:
    """The cases of a file of labelled-case/1 lines or of the flat format for measuring.

    Raises:
        DatasetError: a line is neither; names the place.
    """
    cases = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            raw = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise DatasetError(place, "line", "JSON", str(error)) from error
        flat = isinstance(raw, dict) and "log" in raw and "labels" not in raw
        cases.append(from_measured(raw, place) if flat else labelled_cases.parse(raw, place))
    return cases


def answer_of(verdict: Verdict) -> Answer:
    """A verdict as an answer."""
    return Answer(
        labels={
            "side": verdict.side,
            "cause": verdict.cause,
            "category": verdict.category or NONE,
            "symptom": verdict.symptom or NONE,
            "retry": verdict.retry_outlook,
        },
        top={"cause": verdict.cause_top, "symptom": verdict.symptom_top},
        confidence=verdict.confidence,
        abstained=verdict.abstained,
        rank=verdict.suspect.rank if verdict.suspect else None,
        initiating=tuple(line.text for line in verdict.evidence if line.role == "initiating"),
    )


def majority(cases: Sequence[LabelledCase]) -> list[Answer]:
    """The most frequent label of each axis, always."""
    labels = {}
    for axis in AXES:
        counts = Counter(best for case in cases if (best := case.labels.best[axis]) is not None)
        labels[axis] = counts.most_common(1)[0][0] if counts else NONE
    shown = Answer(labels=labels, top={}, confidence=0.5)
    return [shown] * len(cases)


def signatures_only(raws: Sequence[RawCase], catalogue: Catalogue) -> list[Answer]:
    """What the catalogue alone says; "user, buggy code, none" where it says nothing."""
    axes = taxonomy.load()
    extractor = Extractor(Scanner(catalogue))
    fallback = {"cause": "USER.1", "category": NO_LABEL, "symptom": NO_LABEL, "retry": "futile"}
    out = []
    for raw in raws:
        items = extractor.extract(raw).items
        labels: dict[str, str] = {}
        for axis, default in fallback.items():
            scores: dict[str, float] = defaultdict(float)
            for pull, hit in label_fusion.votes(items, axis):
                for code, weight in label_fusion.weights_of(hit, axis).items():
                    scores[code] += pull * weight
            labels[axis] = max(scores, key=lambda code: scores[code]) if scores else default
        labels["side"] = axes.side_of(labels["cause"])
        out.append(Answer(labels=labels, top={}, confidence=0.5))
    return out


def _axis(axis: str, cases: Sequence[LabelledCase], answers: Sequence[Answer]) -> AxisFigures:
    pairs: list[tuple[str, str]] = []
    right3 = 0
    for case, answer in zip(cases, answers, strict=True):
        truth = case.labels.best[axis]
        if truth is None:
            continue
        allowed = case.labels.allowed[axis]
        got = answer.labels[axis]
        pairs.append((truth, truth if got in allowed else got))
        right3 += bool({got, *answer.top.get(axis, ())[:3]} & set(allowed))
    rows = []
    for code in sorted({truth for truth, _ in pairs}):
        hits = sum(truth == code == got for truth, got in pairs)
        told = sum(got == code for _, got in pairs)
        there = sum(truth == code for truth, _ in pairs)
        precision, recall = hits / told if told else 0.0, hits / there
        f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
        rows.append(ClassRow(code, there, precision, recall, f1))
    count = len(pairs)
    return AxisFigures(
        axis=axis,
        cases=count,
        accuracy=sum(truth == got for truth, got in pairs) / count if count else float("nan"),
        top3=right3 / count if count else float("nan"),
        macro_f1=sum(row.f1 for row in rows) / len(rows) if rows else float("nan"),
        classes=tuple(rows),
        confusion=Counter(pairs),
    )


def expected_calibration_error(points: Sequence[tuple[float, bool]]) -> float:
    """Mean distance of confidence and share right over ten bins, by their cases."""
    return sum(abs(told - right) * count for told, right, count in reliability(points)) / max(1, len(points))


def reliability(points: Sequence[tuple[float, bool]]) -> list[tuple[float, float, int]]:
    """By bin of confidence: mean confidence, share right, cases; empty bins left out."""
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for told, right in points:
        bins[min(BINS - 1, max(0, int(np.ceil(told * BINS)) - 1))].append((told, right))
    return [
        (sum(told for told, _ in inside) / len(inside), sum(right for _, right in inside) / len(inside), len(inside))
        for _, inside in sorted(bins.items())
    ]


def coverage_curve(points: Sequence[tuple[float, bool]]) -> list[tuple[float, float]]:
    """(share answered, share right among them), most confident first, a point each 2 %."""
    ordered = sorted(points, key=lambda one: -one[0])
    out, right = [], 0
    step = max(1, len(ordered) // 50)
    for number, (_, correct) in enumerate(ordered, 1):
        right += correct
        if number % step == 0 or number == len(ordered):
            out.append((number / len(ordered), right / number))
    return out


def auroc(points: Sequence[tuple[float, bool]]) -> float:
    """Chance that a right answer is more confident than a wrong one; not a number if all are right or all wrong."""
    right = np.sort([told for told, correct in points if correct])
    wrong = np.array([told for told, correct in points if not correct])
    if not len(right) or not len(wrong):
        return float("nan")
    below = np.searchsorted(right, wrong, side="left")
    equal = np.searchsorted(right, wrong, side="right") - below
    return float(((len(right) - below - equal) + equal / 2).sum() / len(right) / len(wrong))


def _same_line(root: str, shown: Sequence[str]) -> bool:
    core = tidy(root)[:160]
    return any(core in one or (len(one) > 20 and one in core) for one in shown)  # noqa: PLR2004 - not by a few letters


def is_of_many_ranks(case: LabelledCase) -> bool:
    """Whether a case is a run of more than one rank: by its provenance, else by its streams."""
    told = case.provenance.get("ranks")
    if isinstance(told, int):
        return told > 1
    return len({stream.rank for stream in case.raw.streams if stream.rank is not None}) > 1


def medium_of(case: LabelledCase) -> str:
    """Whether a case is a log or a report that a person wrote: as it is labelled, else as its text reads."""
    medium = case.provenance.get("medium")
    if isinstance(medium, str):
        return medium
    return "report" if any(is_report(stream.text) for stream in case.raw.streams) else "log"


def _by_medium(pairs: Sequence[tuple[LabelledCase, Answer]]) -> dict[str, dict[str, tuple[float, int]]]:
    parts: dict[str, list[tuple[LabelledCase, Answer]]] = {"log": [], "report": []}
    for case, answer in pairs:
        parts[medium_of(case)].append((case, answer))
    return {
        medium: {
            axis: _share(
                [
                    answer.labels[axis] in case.labels.allowed[axis]
                    for case, answer in part
                    if case.labels.best[axis] is not None
                ]
            )
            for axis in AXES
        }
        for medium, part in parts.items()
        if part
    }


def _share(right: Sequence[bool]) -> tuple[float, int]:
    return (sum(right) / len(right) if right else float("nan"), len(right))


def _ranks_right(pairs: Sequence[tuple[LabelledCase, Answer]]) -> tuple[float, int]:
    return _share(
        [
            answer.rank == case.labels.root_rank
            for case, answer in pairs
            if case.labels.root_rank is not None and case.raw.streams
        ]
    )


def _lines_right(pairs: Sequence[tuple[LabelledCase, Answer]]) -> tuple[float, int]:
    return _share(
        [_same_line(case.labels.root_line, answer.initiating) for case, answer in pairs if case.labels.root_line]
    )


def measure(name: str, cases: Sequence[LabelledCase], answers: Sequence[Answer]) -> Evaluation:
    """All figures of one predictor."""
    out = Evaluation(name=name, cases=len(cases))
    for axis in AXES:
        out.axes[axis] = _axis(axis, cases, answers)
    pairs = [
        (case, answer) for case, answer in zip(cases, answers, strict=True) if case.labels.best["side"] is not None
    ]
    points = [(answer.confidence, answer.labels["side"] in case.labels.allowed["side"]) for case, answer in pairs]
    if points:
        out.ece, out.auroc = expected_calibration_error(points), auroc(points)
        out.reliability, out.coverage = reliability(points), coverage_curve(points)
        sure = [right for (_, right), (_, answer) in zip(points, pairs, strict=True) if not answer.abstained]
        out.answered = len(sure) / len(points)
        out.right_when_answered = sum(sure) / len(sure) if sure else float("nan")
    both = list(zip(cases, answers, strict=True))
    many = [(case, answer) for case, answer in both if is_of_many_ranks(case)]
    out.root_rank, out.root_line = _ranks_right(both), _lines_right(both)
    out.many_rank, out.many_line = _ranks_right(many), _lines_right(many)
    out.mistakes = _mistakes(pairs)
    out.by_medium = _by_medium(both)
    out.weak = {
        axis: {row.code: row.cases for row in out.axes[axis].classes if row.cases < WEAK_CLASS} for axis in AXES
    }
    return out


def _mistakes(pairs: Sequence[tuple[LabelledCase, Answer]], most: int = 40) -> list[Mistake]:
    found = [
        Mistake(
            id=case.id,
            kind=case.kind,
            truth=str(case.labels.best["cause"]),
            got=answer.labels["cause"],
            confidence=answer.confidence,
            line=answer.initiating[0] if answer.initiating else _first_line(case.raw.streams),
        )
        for case, answer in pairs
        if answer.labels["cause"] not in case.labels.allowed["cause"]
    ]
    return sorted(found, key=lambda one: -one.confidence)[:most]


def _first_line(streams: Sequence[LogStream]) -> str:
    return tidy(next((stream.text for stream in streams if stream.text.strip()), "").strip().split("\n")[0], 200)
