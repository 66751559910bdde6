"""Finds kinds whose texts are nearly the same, so that none is stored twice.

Made-up values, numbers and case are masked; two kinds are compared by the cosine of their words and pairs of words,
weighted by rarity (TF-IDF). The limit is lower for kinds with the same cause and symptom, because they carry the same
information. Kinds with different labels may be more similar: the few words that differ are the relevant ones.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from classifiers.composition.kinds import Kind

MAX_SAME_LABELS: Final = 0.4  # judgement: nearly all pairs above it describe the same failure
MAX_OTHER_LABELS: Final = 0.7  # judgement: above it, the words that differ have too little weight
_BLOCK: Final = 512
_CHOICE: Final = re.compile(r"\$\(([^()]*)\)")
_NUMBERS: Final = re.compile(r"\d+-\d+")
_VALUE: Final = re.compile(r"\$\{?[a-z]+\d*\}?")
_NUMBER: Final = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)*")
_WORD: Final = re.compile(r"[a-z_]+|#|[\u4e00-\u9fff]|[^\W\d_a-z]+")


def masked(text: str) -> str:
    """Return a text in lower case with expanded choices and with placeholders for values and numbers."""
    text = _CHOICE.sub(lambda found: " # " if _NUMBERS.fullmatch(found[1]) else found[1].replace("|", " "), text)
    text = _NUMBER.sub("#", _VALUE.sub(" v ", text).replace(">>", "").lower())
    return " ".join(_WORD.findall(text))


def _words_and_pairs(text: str) -> list[str]:
    words = text.split()
    return [*words, *(f"{one} {other}" for one, other in pairwise(words))]


def similar(kinds: Sequence[Kind]) -> Iterator[tuple[Kind, Kind, float]]:
    """Yield pairs of kinds that are too similar, with their cosine; runs are skipped, their texts are few and short."""
    compared = [kind for kind in kinds if not kind.is_run]
    if not compared:
        return
    words = TfidfVectorizer(analyzer=_words_and_pairs, sublinear_tf=True, dtype=np.float32)
    matrix: Any = words.fit_transform([masked("\n".join(kind.texts)) for kind in compared])
    for begin in range(0, len(compared), _BLOCK):
        cosines = (matrix[begin : begin + _BLOCK] @ matrix.T).tocoo()
        close = cosines.data >= MAX_SAME_LABELS
        for row, column, cosine in zip(cosines.row[close], cosines.col[close], cosines.data[close], strict=True):
            one, other = compared[begin + row], compared[column]
            if begin + row < column and cosine >= _limit(one, other):
                yield one, other, float(cosine)


def _limit(one: Kind, other: Kind) -> float:
    same = all(one.labels[axis] == other.labels[axis] for axis in ("cause", "symptom"))
    return MAX_SAME_LABELS if same else MAX_OTHER_LABELS
