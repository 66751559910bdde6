"""Records of drift monitoring: counts as read from the database, and the report."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

DriftMeasure = Literal["unknown_words", "unmatched_lines", "abstained", "contested", "corrected", "confidence"]


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """The failures of one group (fingerprint) on one cluster that ended in a period.

    Attributes:
        cluster: the cluster.
        fingerprint: the group.
        first: the id of the first failure.
        failures: number of failures.
        abstained: undecided ones.
        measured: those whose input was measured.
        unknown: sum of their shares of unknown words.
        lines: their lines of evidence.
        unmatched: those that no signature matches.
        contested: failures whose verdict was contested.
        corrected: failures whose side or cause a person corrected.
    """

    cluster: str
    fingerprint: str
    first: int
    failures: int
    abstained: int = 0
    measured: int = 0
    unknown: float = 0.0
    lines: int = 0
    unmatched: int = 0
    contested: int = 0
    corrected: int = 0


@dataclass(frozen=True, slots=True)
class AuditedAnswer:
    """One audited failure: the confidence of the machine, whether its side was right, and its weight in the sample."""

    cluster: str
    failure: int
    confidence: float
    right: bool
    weight: float


@dataclass(frozen=True, slots=True)
class VersionCount:
    """Failures of a cluster whose logs name a version of some software; `first` is the id of the first one."""

    cluster: str
    version: str
    failures: int
    first: int


class Figure(BaseModel):
    """A figure with its 95 % interval, and the failures that it rests on."""

    model_config = ConfigDict(frozen=True)

    value: float
    low: float
    high: float
    failures: int


class Example(BaseModel):
    """A failure to look at."""

    model_config = ConfigDict(frozen=True)

    failure: int
    headline: str = ""


class DriftFigure(BaseModel):
    """One measure in the recent period and in the one before.

    `change`: 1 it grew, -1 it fell, 0 no difference that is certain and large enough. `examples`: the first failures of
    the groups that contribute most to a change.
    """

    model_config = ConfigDict(frozen=True)

    measure: DriftMeasure
    recent: Figure | None
    reference: Figure | None
    change: int = 0
    examples: tuple[Example, ...] = ()


class NewVersion(BaseModel):
    """A version of some software that recent logs name and earlier ones do not; `first` is the first failure."""

    model_config = ConfigDict(frozen=True)

    version: str
    failures: int
    first: Example


class ClusterDrift(BaseModel):
    """The comparison on one cluster."""

    model_config = ConfigDict(frozen=True)

    cluster: str
    failures: int
    reference_failures: int
    figures: tuple[DriftFigure, ...]
    versions: tuple[NewVersion, ...] = ()

    @property
    def changed(self) -> tuple[DriftFigure, ...]:
        """The measures that changed."""
        return tuple(one for one in self.figures if one.change)


class DriftReport(BaseModel):
    """A comparison of failures that ended in [`recent_since`, `at`) with those in [`reference_since`, `recent_since`).

    `audits_since` and `audits_reference_since` are the longer periods of the measure `confidence`.
    """

    model_config = ConfigDict(frozen=True)

    at: datetime
    recent_since: datetime
    reference_since: datetime
    audits_since: datetime
    audits_reference_since: datetime
    clusters: tuple[ClusterDrift, ...] = ()
