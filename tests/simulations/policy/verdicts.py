"""Verdicts for failures with known causes: drawn from the measured confusion and confidence, or always right."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate
from random import Random
from typing import Any

import orjson

from classifiers import taxonomy
from classifiers.contracts import Suspect, Verdict
from classifiers.taxonomy import RetryOutlook

SURE = 0.97


@dataclass(frozen=True, slots=True)
class Truth:
    """The real cause and retry outlook."""

    cause: str
    outlook: RetryOutlook


@dataclass(frozen=True, slots=True)
class _Drawn:
    cause: str
    outlook: RetryOutlook
    abstained: bool
    confidence: float


@dataclass(frozen=True, slots=True)
class _Table:
    weights: tuple[float, ...]
    drawn: tuple[_Drawn, ...]


class Measured:
    """The table written by `faultline evaluate --json` (faultline-measured/1): distribution of verdicts by real cause.

    Raises:
        KeyError: the table has an unexpected shape.
        ValueError: the table has another schema.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        if data.get("schema") != "faultline-measured/1":
            raise ValueError(f"schema faultline-measured/1 expected, not {data.get('schema')}")
        self.about = f"{data['model']}, {data['cases']} cases of {data['kinds']} kinds, held out {data['splits']}"
        self._tables: dict[Truth, _Table] = {}
        self._kinds: dict[tuple[tuple[str, ...], RetryOutlook], tuple[tuple[float, ...], tuple[Truth, ...]]] = {}
        self._shares = {code: entry.share or 0.0 for code, entry in taxonomy.load().causes.items()}
        for cause, found in data["causes"].items():
            for outlook in found["truth"]:
                rows = [row for row in found["outcomes"] if row["truth"] == outlook]
                if rows:
                    drawn = [_Drawn(row["cause"], row["retry"], row["abstained"], row["confidence"]) for row in rows]
                    weights = tuple(accumulate(row["share"] for row in rows))
                    self._tables[Truth(cause, outlook)] = _Table(weights, tuple(drawn))
        self._truth_shares = {
            Truth(cause, outlook): self._shares[cause] * share
            for cause, found in data["causes"].items()
            for outlook, share in found["truth"].items()
            if Truth(cause, outlook) in self._tables
        }

    def truth(self, random: Random, codes: tuple[str, ...], outlook: RetryOutlook) -> Truth:
        """A cause whose code begins with one of `codes`, with this outlook, drawn with the shares of Gao et al."""
        key = (codes, outlook)
        if key not in self._kinds:
            fitting = {
                truth: share
                for truth, share in self._truth_shares.items()
                if truth.cause.startswith(codes) and truth.outlook == outlook and share > 0
            }
            self._kinds[key] = (tuple(accumulate(fitting.values())), tuple(fitting))
        weights, truths = self._kinds[key]
        return random.choices(truths, cum_weights=weights)[0]

    def draw(self, random: Random, truth: Truth) -> _Drawn:
        """A verdict of the classifier for this cause."""
        table = self._tables[truth]
        return random.choices(table.drawn, cum_weights=table.weights)[0]


def right(truth: Truth) -> _Drawn:
    """The verdict of a classifier that is always right."""
    return _Drawn(truth.cause, truth.outlook, abstained=False, confidence=SURE)


def verdict(output: _Drawn, fingerprint: str, node: str | None) -> Verdict:
    """The verdict as the advice reads it; texts and evidence are not simulated."""
    return Verdict(
        side=taxonomy.load().side_of(output.cause),
        cause=output.cause,
        cause_top=(output.cause,),
        category=None,
        symptom=None,
        symptom_top=(),
        platform_symptom="crash",
        confidence=output.confidence,
        abstained=output.abstained,
        retry_outlook=output.outlook,
        fingerprint=fingerprint,
        explanation="",
        model="simulated",
        rules="simulated",
        suspect=None if node is None else Suspect(node=node),
    )


@cache
def packaged() -> Measured:
    """The table measured for this version of the package."""
    return Measured(orjson.loads(files("service.recommend").joinpath("measured.json").read_bytes()))
