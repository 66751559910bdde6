"""How telling the words of a log line are: a logistic model of "this line is where the failure began".

A short log is read whole, with banners, progress and survived warnings around the line that tells the cause. Without
weights each of these lines counts as much as that one, and a few more of them change the verdict. The model is fitted
on the lines of logs whose first failing line is labelled: that line against all others.
"""

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

import numpy as np

from classifiers.data.labelled_cases import LabelledCase
from classifiers.extraction import benign_lines
from classifiers.model import constants
from classifiers.model.tokenizer import words

_REPORT: Final = "report"


@dataclass(frozen=True, slots=True)
class LineWeights:
    """Weights of words, and the intercept, of the log odds that a line is where the failure began."""

    words: Mapping[str, float]
    intercept: float

    def weight(self, line: str) -> float:
        """How much the words of a line count, from `constants.LEAST_LINE_WEIGHT` to 1."""
        odds = self.log_odds(line)
        least = constants.LEAST_LINE_WEIGHT
        return least if odds is None else least + (1.0 - least) / (1.0 + math.exp(-max(-30.0, min(30.0, odds))))

    def log_odds(self, line: str) -> float | None:
        """The log odds that a line is where a failure began, None for a line without words."""
        found = words(line)
        if not found:
            return None
        return self.intercept + sum(map(self.words.get, found, repeat(0.0))) / math.sqrt(len(found))


# Without a fitted model all lines count alike.
EQUAL: Final = LineWeights({}, 30.0)


def fit(cases: Iterable[LabelledCase], seed: int = 0) -> LineWeights:
    """Weights from the logs of cases with a labelled first line; `EQUAL` where there are none.

    Texts that people wrote are left out. A kind of failure counts by the root of its number of cases.
    """
    lines, is_first, weights = _lines(list(cases), seed)
    if len(set(is_first)) < 2:  # noqa: PLR2004 - first lines and others
        return EQUAL
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - for training only; a start without is faster
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - as above

    matrix, names = _matrix(lines)
    solver = LogisticRegression(C=constants.LINE_INVERSE_PENALTY, max_iter=200)
    with threadpool_limits(limits=1, user_api="blas"):  # of short vectors, for which threads would wait for one another
        solver.fit(matrix, np.asarray(is_first), sample_weight=np.asarray(weights))
    fitted = zip(names, solver.coef_[0].tolist(), strict=True)
    kept = {name: round(value, 3) for name, value in fitted if abs(value) >= constants.SMALL_LINE_WEIGHT}
    return LineWeights(kept, round(float(solver.intercept_[0]), 3))


def _lines(cases: Sequence[LabelledCase], seed: int) -> tuple[list[str], list[bool], list[float]]:
    """Lines of the logs, whether each is the first of the failure, and its weight."""
    rng = random.Random(seed)  # noqa: S311 - a sample of lines
    per_kind = Counter(case.kind for case in cases)
    lines: list[str] = []
    is_first: list[bool] = []
    weights: list[float] = []
    for case in cases:
        root = (case.labels.root_line or "").strip()
        if not root or case.provenance.get("medium") == _REPORT:
            continue
        texts = [stream.text for stream in case.raw.streams]
        every = [line for text in texts for line in text.splitlines() if line.strip()]
        first = [line for line in every if _overlaps(line, root)][:2]
        others = [line for line in every if not _overlaps(line, root)]
        others = rng.sample(others, constants.OTHER_LINES) if len(others) > constants.OTHER_LINES else others
        others = [line for line in others if not benign_lines.is_benign(line)]
        if first:
            share = 1 / math.sqrt(per_kind[case.kind])
            lines += [*first, *others]
            is_first += [True] * len(first) + [False] * len(others)
            weights += [share / len(first)] * len(first) + [share / max(1, len(others))] * len(others)
    return lines, is_first, weights


def _overlaps(line: str, root: str) -> bool:
    """Whether a line contains the labelled first line or is part of it."""
    return root in line or line.strip() in root


def _matrix(lines: Sequence[str]) -> tuple[Any, list[str]]:
    """Lines × words as a sparse matrix, each line of length one, and the words of the columns."""
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - for training only; a start without is faster

    columns: dict[str, int] = {}
    pointers, indices, data = [0], [], []
    for line in lines:
        found = words(line)
        indices += [columns.setdefault(word, len(columns)) for word in found]
        data += [1 / math.sqrt(max(1, len(found)))] * len(found)
        pointers.append(len(indices))
    return csr_matrix((data, indices, pointers), shape=(len(lines), len(columns))), list(columns)
