"""What a node event says by its words: a logistic model over the catalogue entries that stand for events.

The catalogue knows an event by a pattern. There are more programs that report events, and more ways to word one, than
patterns. Where the catalogue knows none of a failure's events, this model reads the words of the others, and the rules
of relevance judge what it finds as they judge any event: by time, place and what the log shows.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from classifiers.data.event_texts import EventText
from classifiers.model import constants
from classifiers.model.tokenizer import words
from classifiers.signatures import Catalogue, Signature

HARMLESS: Final = ""  # the class of events that harm no job


@dataclass(frozen=True, slots=True)
class EventWeights:
    """A fitted model.

    Attributes:
        classes: ids of catalogue entries, and `HARMLESS`.
        words: by word its weight in each class, by the class's place; weights of 0 are left out.
        intercepts: the intercept of each class.
    """

    classes: tuple[str, ...]
    words: Mapping[str, Mapping[int, float]]
    intercepts: tuple[float, ...]

    def entry_of(self, text: str, source: str | None) -> str | None:
        """The id of the entry that stands for an event, None if it is likelier to be harmless than any harm at all."""
        found = [word for word in features(text, source) if word in self.words]
        if not found or not self.classes:
            return None
        scores = list(self.intercepts)
        share = 1 / math.sqrt(len(found))
        for word in found:
            for place, weight in self.words[word].items():
                scores[place] += share * weight
        most = max(scores)
        shares = [math.exp(score - most) for score in scores]
        harmless = self.classes.index(HARMLESS)
        if sum(shares) - shares[harmless] < constants.EVENT_THRESHOLD * sum(shares):
            return None
        shares[harmless] = -1.0
        return self.classes[shares.index(max(shares))]


# Without a fitted model no event is known by its words.
NONE: Final = EventWeights((), {}, ())


def entries_of(model: EventWeights, catalogue: Catalogue) -> Callable[[str, str | None], Signature | None]:
    """Finds the catalogue entry that stands for an event, None if it harms no job."""
    by_id = {entry.id: entry for entry in catalogue.entries if entry.id in model.classes}

    def entry_of(text: str, source: str | None) -> Signature | None:
        return by_id.get(model.entry_of(text, source) or HARMLESS)

    return entry_of


def features(text: str, source: str | None) -> tuple[str, ...]:
    """The words of an event and who reports it."""
    return (f"source={source.lower()}", *words(text)) if source else words(text)


def fit(texts: Sequence[EventText], seed: int = 0) -> EventWeights:
    """Weights from labelled texts, each kind counted by the root of the number of its texts; `NONE` without any."""
    if len({one.entry for one in texts}) < 2:  # noqa: PLR2004 - harmless ones and others
        return NONE
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - for training only; a start without is faster

    matrix, names = _matrix(texts)
    labels = np.asarray([one.entry or HARMLESS for one in texts])
    per_kind = Counter((one.kind, one.entry) for one in texts)
    weights = np.asarray([1 / math.sqrt(per_kind[one.kind, one.entry]) for one in texts])
    solver = LogisticRegression(C=constants.EVENT_INVERSE_PENALTY, max_iter=500, random_state=seed)
    solver.fit(matrix, labels, sample_weight=weights)
    coefficients, intercepts = solver.coef_, solver.intercept_
    if len(solver.classes_) == 2:  # noqa: PLR2004 - one row stands for both classes
        coefficients, intercepts = (
            np.vstack([-coefficients, coefficients]) / 2,
            np.hstack([-intercepts, intercepts]) / 2,
        )
    kept: dict[str, dict[int, float]] = {}
    for name, column in zip(names, coefficients.T.tolist(), strict=True):
        rounded = {
            place: round(value, 3) for place, value in enumerate(column) if abs(value) >= constants.SMALL_LINE_WEIGHT
        }
        if rounded:
            kept[name] = rounded
    return EventWeights(
        tuple(solver.classes_.tolist()), kept, tuple(round(float(value), 3) for value in intercepts.tolist())
    )


def _matrix(texts: Sequence[EventText]) -> tuple[Any, list[str]]:
    """Texts × words as a sparse matrix, each row of length one, and the words of the columns."""
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - for training only; a start without is faster

    columns: dict[str, int] = {}
    pointers, indices, data = [0], [], []
    for one in texts:
        found = features(one.text, one.source)
        indices += [columns.setdefault(word, len(columns)) for word in found]
        data += [1 / math.sqrt(max(1, len(found)))] * len(found)
        pointers.append(len(indices))
    return csr_matrix((data, indices, pointers), shape=(len(texts), len(columns))), list(columns)
