"""Accuracy of the machine's verdicts from weekly audits: weighted back to all failures, with intervals. Pure.

An audit is a random sample by stratum of each week. The share of a population is the mean of the shares of its strata,
weighted with their sizes (Cochran 1977, *Sampling Techniques*, chapter 5). Its interval is Wilson's with the effective
size of the sample (Korn and Graubard 1998, *Confidence intervals for proportions with small expected number of positive
counts*): the size of a simple random sample with the same variance.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from service.feedback.records import AuditResult
from service.reports import intervals
from service.reports.intervals import Interval

DEFINITION = (
    "share of all failures of the audited weeks for which the classifier named the right side (or side and cause), "
    "as judged by people who did not see the verdict; failures whose cause they could not tell are left out"
)


@dataclass(frozen=True, slots=True)
class StratumAccuracy:
    """One stratum: its failures in the audited weeks (`population`), answers, and the machine's right answers."""

    name: str
    population: int
    answered: int
    unsure: int
    side_right: int
    cause_right: int

    @property
    def side(self) -> Interval | None:
        """The share with the right side; None without an answer."""
        return intervals.share(self.side_right, self.answered)

    @property
    def cause(self) -> Interval | None:
        """The share with the right side and cause; None without an answer."""
        return intervals.share(self.cause_right, self.answered)


@dataclass(frozen=True, slots=True)
class AuditAccuracy:
    """The result of audits.

    `answered`: audited failures that somebody judged; `unsure`: those where the person cannot tell. `side` and `cause`
    are shares of all failures in strata with an answer, which are `covered` (0..1) of all failures; None without one.
    """

    answered: int
    unsure: int
    covered: float
    side: Interval | None
    cause: Interval | None
    strata: tuple[StratumAccuracy, ...]

    @property
    def side_right(self) -> int:
        """Answers with the right side, not weighted."""
        return sum(one.side_right for one in self.strata)


def accuracy(results: Sequence[AuditResult]) -> AuditAccuracy:
    """The accuracy from the samples of one week or several."""
    strata = tuple(_stratum(name, results) for name in sorted({one.stratum for one in results}))
    answered = [week for one in strata for week in _by_week(one.name, results) if week.answered]
    total = sum(one.population for one in strata)
    return AuditAccuracy(
        answered=sum(one.answered for one in strata),
        unsure=sum(one.unsure for one in strata),
        covered=sum(one.population for one in answered) / total if total else 0.0,
        side=_weighted([(one.name, one.population, one.side_right, one.answered) for one in answered]),
        cause=_weighted([(one.name, one.population, one.cause_right, one.answered) for one in answered]),
        strata=strata,
    )


def _by_week(name: str, results: Sequence[AuditResult]) -> list[StratumAccuracy]:
    """A stratum of each week: the weeks have samples of one size, but not as many failures."""
    weeks: defaultdict[str, list[AuditResult]] = defaultdict(list)
    for one in results:
        if one.stratum == name:
            weeks[one.week].append(one)
    return [_stratum(name, of_week) for of_week in weeks.values()]


def _stratum(name: str, results: Sequence[AuditResult]) -> StratumAccuracy:
    of = [one for one in results if one.stratum == name]
    sizes = {one.week: one.population for one in of}
    # A sample without strata has no known population: it stands for itself.
    population = sum(sum(one.week == week for one in of) if size is None else size for week, size in sizes.items())
    return StratumAccuracy(
        name,
        population,
        answered=sum(one.side_right is not None for one in of),
        unsure=sum(one.unsure for one in of),
        side_right=sum(one.side_right is True for one in of),
        cause_right=sum(one.cause_right is True for one in of),
    )


def _weighted(strata: Sequence[tuple[str, int, int, int]]) -> Interval | None:
    """The weighted share of strata of weeks, each with its name, population, right answers and answers."""
    total = sum(population for _, population, _, _ in strata)
    if not total:
        return None
    of_name: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (1, 2))
    for name, _, right, answered in strata:
        of_name[name] = of_name[name][0] + right, of_name[name][1] + answered
    share = variance = smoothed = 0.0
    for name, population, right, answered in strata:
        weight = population / total
        # With one right and one wrong answer more, a stratum without errors has a variance too (Agresti and Coull).
        likely = of_name[name][0] / of_name[name][1]
        rest = max(0.0, 1 - answered / population)
        share += weight * right / answered
        smoothed += weight * likely
        variance += weight * weight * likely * (1 - likely) / answered * rest
    if not variance:
        return Interval(share, share, share)  # every failure was audited
    found = intervals.share_of(min(1.0, share), smoothed * (1 - smoothed) / variance)
    half = 0.5 / total  # of one failure: the share of few failures has few values (continuity correction, Cochran 3.9)
    return Interval(found.value, max(0.0, found.low - half), min(1.0, found.high + half))
