"""How sure the classifier may be of failures of unknown sources: the two constants that its confidence is scaled by.

`python -m tests.classifiers.unseen_confidence [MODEL]` fits a line over the log-odds of the confidence on the failures
and runs in tests/data that nobody has read, and prints `UNSEEN_SLOPE` and `UNSEEN_OFFSET` for the next training. A set
that was read to improve the classifier has to leave this list: the classifier is right too often there. The short jobs
with events are left out as well: each was written to be hard.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from classifiers.data import labelled_cases
from classifiers.diagnoser import Diagnoser
from classifiers.model import constants
from classifiers.model.site import platt_scaling
from classifiers.model.site.layer import log_odds

DATA: Final = Path(__file__).parents[1] / "data"
UNREAD: Final[Mapping[str, Path]] = {
    "runs": DATA / "unseen_runs" / "unread.jsonl.zst",
    "runs of industry and of institutes": DATA / "unseen_runs" / "industry_and_institutes_unread.jsonl.zst",
    "runs of startups and of hospitals": DATA / "unseen_runs" / "startups_and_hospitals_unread.jsonl.zst",
    "short failures": DATA / "unseen_failures" / "tests.jsonl.zst",
}


def confidences(diagnoser: Diagnoser, path: Path) -> list[tuple[float, bool]]:
    """Of each case of a file the confidence, and whether the side is right."""
    cases = labelled_cases.read_file(path)
    verdicts = diagnoser.diagnose([case.raw for case in cases])
    return [
        (verdict.confidence, verdict.side in case.labels.allowed["side"])
        for case, verdict in zip(cases, verdicts, strict=True)
    ]


def main(model: Path) -> None:
    """Print the share right and the mean confidence of each set, and the constants that fit them all."""
    diagnoser = Diagnoser.load(model)
    sets = {name: confidences(diagnoser, path) for name, path in UNREAD.items()}
    for name, points in sets.items():
        right = sum(is_right for _, is_right in points) / len(points)
        mean = sum(confidence for confidence, _ in points) / len(points)
        print(f"{name:20} {len(points):4} cases, right {right:.3f}, mean confidence {mean:.3f}")
    points = [point for points in sets.values() for point in points]
    scaled = np.array([log_odds(confidence) for confidence, _ in points])
    odds = (scaled - constants.UNSEEN_OFFSET) / constants.UNSEEN_SLOPE
    slope, offset = platt_scaling.line(odds, np.array([is_right for _, is_right in points], float))
    print(f"UNSEEN_SLOPE {slope:.2f}, UNSEEN_OFFSET {offset:.2f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(sys.prefix) / "share" / "faultline" / "model")
