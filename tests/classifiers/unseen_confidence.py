"""How sure the classifier may be of failures of unknown sources: the constants that its confidence is scaled by.

`python -m tests.classifiers.unseen_confidence [MODEL [FILE ...]]` fits two planes on the failures and runs in
tests/data that nobody has read, and on those of further files of labelled cases, and prints the constants for the next
training. Cases without node events fix the one, over the log-odds of the confidence on held-out kinds and of the cause;
the others a second one, over the result and over how much what a failure may have begun with speaks for the side.
A set that was read to improve the classifier has to leave this list: the classifier is right too often there. The short
jobs with events are left out as well: each was written to be hard. Verdicts that are only a guess have a confidence of
their own.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from classifiers import signatures
from classifiers.data import labelled_cases
from classifiers.diagnoser import Diagnoser
from classifiers.extraction.observations.only_losses import UNKNOWN
from classifiers.model import artifact, constants
from classifiers.model.calibration import Calibration

DATA: Final = Path(__file__).parents[1] / "data"
UNREAD: Final[Mapping[str, Path]] = {
    "runs": DATA / "unseen_runs" / "unread.jsonl.zst",
    "runs of industry and of institutes": DATA / "unseen_runs" / "industry_and_institutes_unread.jsonl.zst",
    "runs of startups and of hospitals": DATA / "unseen_runs" / "startups_and_hospitals_unread.jsonl.zst",
    "runs of satellites and of media": DATA / "unseen_runs" / "satellites_and_media_unread.jsonl.zst",
    "short failures": DATA / "unseen_failures" / "tests.jsonl.zst",
}


@dataclass(frozen=True, slots=True)
class Point:
    """One case.

    Attributes:
        kinds_odds: log-odds of the confidence on held-out kinds, before it is scaled.
        cause_odds: log-odds of the cause.
        confidence: the confidence of the verdict.
        agreement: how much the candidates of its beginning speak for its side, None where nothing tells.
        has_events: whether it has node events.
        is_right: whether the side is right.
    """

    kinds_odds: float
    cause_odds: float
    confidence: float
    agreement: float | None
    has_events: bool
    is_right: bool


def points_of(model: artifact.Model, path: Path) -> list[Point]:
    """The cases of a file."""
    cases = labelled_cases.read_file(path)
    diagnoses = Diagnoser(model, signatures.packaged()).explained([case.raw for case in cases])
    return [
        Point(
            *_parts(model.calibration, one.labels.confidence_features),
            one.confidence,
            one.beginning.agreement,
            bool(case.raw.node_events),
            one.labels.side in case.labels.allowed["side"],
        )
        for case, one in zip(cases, diagnoses, strict=True)
    ]


def _parts(curve: Calibration, features: Sequence[float]) -> tuple[float, float]:
    """Log-odds of the confidence on held-out kinds, and of the cause."""
    scaled = sum(weight * value for weight, value in zip(curve.weights[:-1], features[:-1], strict=True))
    return (scaled + curve.intercept - constants.UNSEEN_OFFSET) / constants.UNSEEN_SLOPE, features[-1]


def plane(points: Sequence[tuple[float, float, bool]]) -> tuple[float, float, float]:
    """Slope, offset and weight of a second number for the log-odds that a side is right, by maximum likelihood."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - as where models are trained

    solver = LogisticRegression(C=np.inf, max_iter=1_000)
    solver.fit([[odds, other] for odds, other, _ in points], [is_right for _, _, is_right in points])
    slope, weight = map(float, solver.coef_[0])
    return slope, float(solver.intercept_[0]), weight


def main(model_dir: Path, further: Sequence[Path] = ()) -> None:
    """Print the share right and the mean confidence of each set, and the constants that fit them all."""
    model = artifact.load(model_dir)
    files = {**UNREAD, **{path.name: path for path in further}}
    sets = {name: points_of(model, path) for name, path in files.items()}
    for name, points in sets.items():
        right = sum(point.is_right for point in points) / len(points)
        mean = sum(point.confidence for point in points) / len(points)
        print(f"{name:36} {len(points):4} cases, right {right:.3f}, mean confidence {mean:.3f}")
    fitted = [point for points in sets.values() for point in points if point.confidence != UNKNOWN]
    alone = [(point.kinds_odds, point.cause_odds, point.is_right) for point in fitted if not point.has_events]
    slope, offset, cause = plane(alone)
    print(f"UNSEEN_SLOPE {slope:.2f}, UNSEEN_OFFSET {offset:.2f}, UNSEEN_CAUSE {cause:.2f}")
    events = [
        (point.kinds_odds * constants.UNSEEN_SLOPE + constants.UNSEEN_OFFSET, point.agreement, point.is_right)
        for point in fitted
        if point.has_events and point.agreement is not None
    ]
    slope, offset, agreement = plane(events)
    print(f"EVENTS_SLOPE {slope:.2f}, EVENTS_OFFSET {offset:.2f}, EVENTS_AGREEMENT {agreement:.2f}")


if __name__ == "__main__":
    given = list(map(Path, sys.argv[1:])) or [Path(sys.prefix) / "share" / "faultline" / "model"]
    main(given[0], given[1:])
