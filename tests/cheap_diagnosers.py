"""Diagnosers of a test process: what one builds of a catalogue serves all that have the same catalogue.

A scanner takes 0.05 s of processor time to build and 0.2 s to compile its patterns, the votes of the entries 0.02 s,
and tests make a thousand diagnosers of the packaged catalogue. What is shared keeps nothing of the texts that are read.
Processes that tests start build their own.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from classifiers import diagnoser
from classifiers.extraction.scan import Scanner
from classifiers.model.vote_matrix import VoteMatrix
from classifiers.signatures import Catalogue

Made = TypeVar("Made")
KEPT = 8


class _Same:
    """A catalogue as a key: equal to itself alone. It holds the catalogue, so that no other has its identity."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.catalogue is other.catalogue

    def __hash__(self) -> int:
        return id(self.catalogue)


def _once(make: Callable[[Catalogue], Made]) -> Callable[[Catalogue], Made]:
    @lru_cache(maxsize=KEPT)
    def made(key: _Same) -> Made:
        return make(key.catalogue)

    return lambda catalogue: made(_Same(catalogue))


scanner_of = _once(Scanner)
rules_version = _once(diagnoser.rules_version)


@lru_cache(maxsize=KEPT)
def _votes(key: _Same, classes: Sequence[tuple[str, Sequence[str]]], sides: Sequence[Sequence[float]]) -> VoteMatrix:
    return VoteMatrix(key.catalogue, dict(classes), np.array(sides, np.float32))


def votes_of(catalogue: Catalogue, classes: Mapping[str, Sequence[str]], sides: NDArray[Any]) -> VoteMatrix:
    """`VoteMatrix`, built once of a catalogue and the classes of a model."""
    codes = tuple((axis, tuple(some)) for axis, some in classes.items())
    return _votes(_Same(catalogue), codes, tuple(map(tuple, sides.tolist())))
