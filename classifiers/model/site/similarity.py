"""How alike two failures are for the corrections of a site layer: by entries of their first line, and by their words.

Entries count that leave several sides open: "connection refused" may be a wrong address, a server that is down or a
broken network, and which of them it mostly is differs between sites. What a decisive entry, or one of a single side,
says is the same everywhere; labels of other failures with it say nothing new.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from classifiers import taxonomy
from classifiers.model.fusion_input import FIRST_LINE, FusionInput
from classifiers.model.linear_model import Doubles
from classifiers.signatures import Catalogue

# Held-out families: power of the cosine of two failures' features; above 1 a label acts on near failures only.
KERNEL_POWER: Final = 2
_SEVERAL: Final = 2
# Of each feature the rows that have it, and its values there.
_Postings = Mapping[str, tuple[NDArray[np.int64], Doubles]]


@dataclass(frozen=True, slots=True)
class KernelWeights:
    """What the squared cosine of the entries and that of the features count; by default the features alone."""

    entries: float = 0.0
    features: float = 1.0


FEATURES_ALONE: Final = KernelWeights()
# Read failures, held out by source: features alone gain nothing on failures of other programs, entries do.
FITTED: Final = KernelWeights(entries=1.0, features=0.3)


def sides_of(entry: str, catalogue: Catalogue) -> frozenset[str]:
    """The sides of an entry's causes."""
    side_of = taxonomy.load().side_of
    return frozenset(side_of(cause) for cause in catalogue.by_id[entry].causes)


def open_entries(seen: FusionInput, catalogue: Catalogue, side: str | None = None) -> tuple[str, ...]:
    """The entries of a failure's first line that are not decisive and leave several sides open.

    Args:
        seen: what label fusion reads of the failure.
        catalogue: the entries.
        side: only entries that leave this side open; None: all.
    """
    found = {vote.entry for vote in seen.votes if vote.group in FIRST_LINE}
    kept = []
    for name in sorted(found):
        sides = sides_of(name, catalogue)
        undecided = catalogue.by_id[name].strength != "decisive" and len(sides) >= _SEVERAL
        if undecided and (side is None or side in sides):
            kept.append(name)
    return tuple(kept)


class Similarities:
    """Similarity to known failures.

    Args:
        features: the features of each known failure, scaled to length one.
        entries: the open entries of each known failure.
        weights: what the two count.
    """

    def __init__(
        self, features: Sequence[Mapping[str, float]], entries: Sequence[Sequence[str]], weights: KernelWeights
    ) -> None:
        self._known = features
        self._known_entries = entries
        self._weights = weights
        self._features = _postings(features)
        self._entries = _postings([_unit(names) for names in entries])

    def of(self, rows: Sequence[Mapping[str, float]], entries: Sequence[Sequence[str]]) -> Doubles:
        """Similarity of failures, by their features and open entries, to each known one: samples × known failures.

        It is at most the sum of the two weights.
        """
        return self._joined(self.cosines(rows), entries)

    def of_known(self) -> Doubles:
        """Similarity of the known failures to one another, a symmetric matrix."""
        return self._joined(self._clipped(self._known, self._features), self._known_entries)

    def cosines(self, rows: Sequence[Mapping[str, float]]) -> Doubles:
        """Cosine (0..1) of failures' features and those of each known failure: samples × known failures."""
        lengths = np.array([length_of(row) for row in rows])
        products = _products(rows, self._features, len(self._known))
        cosines: Doubles = np.clip(products / np.maximum(lengths, 1e-9)[:, np.newaxis], 0.0, 1.0)
        return cosines

    def _joined(self, cosines: Doubles, entries: Sequence[Sequence[str]]) -> Doubles:
        similar: Doubles = self._weights.features * cosines**KERNEL_POWER
        if self._weights.entries:
            shared = self._clipped([_unit(names) for names in entries], self._entries)
            similar = similar + self._weights.entries * shared**KERNEL_POWER
        return similar

    def _clipped(self, rows: Sequence[Mapping[str, float]], known: _Postings) -> Doubles:
        """Inner products of rows of length one with known ones; rounding may exceed one."""
        products: Doubles = np.clip(_products(rows, known, len(self._known)), 0.0, 1.0)
        return products


def is_similarity_feature(name: str) -> bool:
    """Whether a feature counts for the similarity of two failures; those of all failures do not."""
    return name != "bias" and not name.startswith(("g:", "g1:", "g2:"))


def length_of(row: Mapping[str, float]) -> float:
    """The Euclidean length of the features that count for similarity."""
    return math.sqrt(sum(value * value for name, value in row.items() if is_similarity_feature(name)))


def _unit(names: Sequence[str]) -> dict[str, float]:
    """Entries as a vector of length one."""
    return dict.fromkeys(names, len(names) ** -0.5) if names else {}


def _postings(rows: Sequence[Mapping[str, float]]) -> _Postings:
    """Of each feature the rows that have it, and its values there."""
    found: dict[str, tuple[list[int], list[float]]] = {}
    for number, row in enumerate(rows):
        for name, value in row.items():
            places, values = found.setdefault(name, ([], []))
            places.append(number)
            values.append(value)
    return {name: (np.asarray(places), np.asarray(values)) for name, (places, values) in found.items()}


def _products(rows: Sequence[Mapping[str, float]], known: _Postings, count: int) -> Doubles:
    """Inner products of rows with the `count` rows of `known` postings, rows × count."""
    products = np.zeros((len(rows), count))
    for number, row in enumerate(rows):
        for name, value in row.items():
            if name in known:
                places, values = known[name]
                products[number, places] += value * values
    return products
