"""Compares the counts of two periods, by cluster. Pure.

Failures of one group come from one fault and count as one observation: a single job that fails a thousand times is no
drift. A share is the mean of the groups' shares, weighted with their sizes. Its variance follows from the spread
between the groups and their effective number, (sum of weights)² / sum of squared weights (Kish 1965, *Survey Sampling*,
section 11.7). The interval is Wilson's with the number of independent failures that have the same variance. Two periods
differ where both have enough groups, the interval of the difference excludes zero (Newcombe 1998, method 10) and the
difference is large enough.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final, TypeVar

from service.drift.records import (
    AuditedAnswer,
    ClusterDrift,
    DriftFigure,
    DriftMeasure,
    Example,
    Figure,
    GroupCounts,
    NewVersion,
    VersionCount,
)
from service.reports.intervals import Interval, Z, differs, share_of

# Judgement: smaller changes of a share are not worth a person's time, and fewer failures show nothing.
LEAST_CHANGE: Final = 0.05
LEAST_FAILURES: Final = 30
LEAST_GROUPS: Final = 5  # effective number
LEAST_AUDITS: Final = 20
EXAMPLES: Final = 5
NEW_VERSIONS: Final = 20
CLUSTERS: Final = 50

AnyRow = TypeVar("AnyRow", GroupCounts, AuditedAnswer, VersionCount)

_SHARES: Final[Mapping[DriftMeasure, tuple[Callable[[GroupCounts], float], Callable[[GroupCounts], float]]]] = {
    "unknown_words": (lambda one: one.unknown, lambda one: one.measured),
    "unmatched_lines": (lambda one: one.unmatched, lambda one: one.lines),
    "abstained": (lambda one: one.abstained, lambda one: one.failures),
    "contested": (lambda one: one.contested, lambda one: one.failures),
    "corrected": (lambda one: one.corrected, lambda one: one.failures),
}


@dataclass(frozen=True)
class Period:
    """What was read of one period.

    Attributes:
        groups: the counts of each group on each cluster.
        audited: audited failures.
        versions: versions of software that logs name.
    """

    groups: Sequence[GroupCounts] = ()
    audited: Sequence[AuditedAnswer] = ()
    versions: Sequence[VersionCount] = ()


def compare(recent: Period, reference: Period) -> tuple[ClusterDrift, ...]:
    """The comparison of each cluster with recent failures, those with most failures first; at most 50."""
    now, before = _by_cluster(recent.groups), _by_cluster(reference.groups)
    audited_now, audited_before = _by_cluster(recent.audited), _by_cluster(reference.audited)
    versions_now, versions_before = _by_cluster(recent.versions), _by_cluster(reference.versions)
    found = []
    for cluster, groups in now.items():
        earlier = before.get(cluster, [])
        figures = [_share(name, groups, earlier) for name in _SHARES]
        figures.append(_confidence(audited_now.get(cluster, []), audited_before.get(cluster, [])))
        found.append(
            ClusterDrift(
                cluster=cluster,
                failures=sum(one.failures for one in groups),
                reference_failures=sum(one.failures for one in earlier),
                figures=tuple(figures),
                versions=_new_versions(versions_now.get(cluster, []), versions_before.get(cluster, []), earlier),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.failures, one.cluster))[:CLUSTERS])


def ratio(groups: Iterable[tuple[float, float]]) -> Interval | None:
    """The ratio of the sums of (part, whole) over groups, between 0 and 1, with its interval; None without a whole."""
    used = [(part, whole) for part, whole in groups if whole > 0]
    total = sum(whole for _, whole in used)
    if not total:
        return None
    value = min(1.0, sum(part for part, _ in used) / total)
    squares = sum((whole / total) ** 2 for _, whole in used)
    if len(used) == 1:
        return share_of(value, 1.0)
    spread = sum(whole / total * (part / whole - value) ** 2 for part, whole in used) / (1 - squares)
    size = value * (1 - value) / (spread * squares) if spread else 1 / squares
    return share_of(value, min(max(1.0, size), max(total, 1.0)))


def _share(name: DriftMeasure, recent: Sequence[GroupCounts], reference: Sequence[GroupCounts]) -> DriftFigure:
    part, whole = _SHARES[name]
    now = ratio((part(one), whole(one)) for one in recent)
    before = ratio((part(one), whole(one)) for one in reference)
    enough = _enough(recent, whole) and _enough(reference, whole)
    change = _change(now, before) if enough else 0
    excess = sorted(
        ((change * (part(one) - (before.value if before else 0.0) * whole(one)), one) for one in recent),
        key=lambda item: (-item[0], item[1].first),
    )
    examples = tuple(Example(failure=one.first) for above, one in excess[:EXAMPLES] if above > 0) if change else ()
    return DriftFigure(
        measure=name,
        recent=_figure(now, sum(one.failures for one in recent if whole(one) > 0)),
        reference=_figure(before, sum(one.failures for one in reference if whole(one) > 0)),
        change=change,
        examples=examples,
    )


def _enough(groups: Sequence[GroupCounts], whole: Callable[[GroupCounts], float]) -> bool:
    sizes = [whole(one) for one in groups]
    if sum(one.failures for one, size in zip(groups, sizes, strict=True) if size > 0) < LEAST_FAILURES:
        return False
    return sum(sizes) ** 2 >= LEAST_GROUPS * sum(size**2 for size in sizes)


def _change(now: Interval | None, before: Interval | None) -> int:
    if now is None or before is None or abs(now.value - before.value) < LEAST_CHANGE:
        return 0
    return differs(now, before)


def _confidence(recent: Sequence[AuditedAnswer], reference: Sequence[AuditedAnswer]) -> DriftFigure:
    """Confidence minus audited accuracy of the side: above 0 the machine is too sure. A change is one away from 0."""
    now, before = _gap(recent), _gap(reference)
    change = 0
    if now is not None and len(recent) >= LEAST_AUDITS and abs(now.value) >= LEAST_CHANGE:
        change = 1 if now.low > 0 else -1 if now.high < 0 else 0
    wrong = sorted((one for one in recent if one.right is (change < 0)), key=lambda one: -change * one.confidence)
    return DriftFigure(
        measure="confidence",
        recent=_figure(now, len(recent)),
        reference=_figure(before, len(reference)),
        change=change,
        examples=tuple(Example(failure=one.failure) for one in wrong[:EXAMPLES]) if change else (),
    )


def _gap(answers: Sequence[AuditedAnswer]) -> Interval | None:
    """The weighted mean of confidence minus right (0 or 1), with its interval, at least as wide as if it were 0."""
    total = sum(one.weight for one in answers)
    if not total or len(answers) < 2:  # noqa: PLR2004 - a variance needs two
        return None
    gaps = [(one.confidence - one.right, one.weight) for one in answers]
    mean = sum(gap * weight for gap, weight in gaps) / total
    variance = sum((weight * (gap - mean)) ** 2 for gap, weight in gaps) / total**2 * len(gaps) / (len(gaps) - 1)
    # Where all answers are right the sample has no variance, though a calibrated machine is wrong at times.
    calibrated = sum(one.weight**2 * one.confidence * (1 - one.confidence) for one in answers) / total**2
    half = Z * sqrt(max(variance, calibrated))
    return Interval(mean, mean - half, mean + half)


def _new_versions(
    recent: Sequence[VersionCount], reference: Sequence[VersionCount], earlier: Sequence[GroupCounts]
) -> tuple[NewVersion, ...]:
    """Versions that only recent logs name; none where too few earlier failures were measured to know."""
    if sum(one.measured for one in earlier) < LEAST_FAILURES:
        return ()
    known = {one.version for one in reference}
    new = sorted((one for one in recent if one.version not in known), key=lambda one: (-one.failures, one.version))
    return tuple(
        NewVersion(version=one.version, failures=one.failures, first=Example(failure=one.first))
        for one in new[:NEW_VERSIONS]
    )


def _figure(found: Interval | None, failures: int) -> Figure | None:
    if found is None:
        return None
    value, low, high = (round(one, 4) for one in (found.value, found.low, found.high))
    return Figure(value=value, low=low, high=high, failures=failures)


def _by_cluster(rows: Sequence[AnyRow]) -> dict[str, list[AnyRow]]:
    found: defaultdict[str, list[AnyRow]] = defaultdict(list)
    for one in rows:
        found[one.cluster].append(one)
    return dict(found)
