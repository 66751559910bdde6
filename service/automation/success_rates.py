"""Success rates of resubmits as the advice reads them, cached for a few seconds in each process."""

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.automation.time_limits import OUTCOME_AGE, SUCCESS_RATES_FOR_S
from service.clock import Clock
from service.contracts.advice import Plan
from service.db.session import UnitOfWork
from service.fixes.repository import FixCount
from service.recommend.facts import History, Tally
from service.resubmissions.records import TallyRow


@dataclass(frozen=True, slots=True)
class SuccessRates:
    """Tallies by (cluster, cause), each by plan: under any policy, and by policy.

    `fixes`: by (cluster, cause), how many failures each mitigation resolved, as people reported.
    """

    overall: Mapping[tuple[str, str], Mapping[Plan, Tally]] = field(default_factory=dict)
    by_policy: Mapping[tuple[str, str, str], Mapping[Plan, Tally]] = field(default_factory=dict)
    fixes: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)

    def history(self, cluster: str, cause: str, policy: str) -> History:
        """The history of this cause for the advice."""
        resubmits, fixes = self.overall.get((cluster, cause), {}), self.fixes.get((cluster, cause), {})
        if not resubmits and not fixes:
            return NO_HISTORY
        helped = sum(tally.helped for tally in resubmits.values())
        resubmitted = {"M1": helped + fixes.get("M1", 0)} if helped else {}
        return History(
            resolved_by={**fixes, **resubmitted},
            resubmits=resubmits,
            under_policy=self.by_policy.get((cluster, cause, policy), {}),
        )


NO_HISTORY = History()


def success_rates(rows: list[TallyRow], counts: Sequence[FixCount] = ()) -> SuccessRates:
    """Success rates from stored tallies and counts of fixes."""
    overall: dict[tuple[str, str], dict[Plan, Tally]] = defaultdict(dict)
    by_policy: dict[tuple[str, str, str], dict[Plan, Tally]] = defaultdict(dict)
    for row in rows:
        if row.helped + row.failed == 0:
            continue
        before = overall[row.cluster, row.cause].get(row.plan, Tally())
        overall[row.cluster, row.cause][row.plan] = Tally(before.helped + row.helped, before.failed + row.failed)
        by_policy[row.cluster, row.cause, row.policy][row.plan] = Tally(row.helped, row.failed)
    fixes: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for count in counts:
        fixes[count.cluster, count.cause][count.code] = count.many
    return SuccessRates(dict(overall), dict(by_policy), dict(fixes))


class SuccessRateCache:
    """Caches the success rates; they are read again after some seconds or after `clear`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._cached: SuccessRates | None = None
        self._read_at = 0.0

    def get(self, work: UnitOfWork) -> SuccessRates:
        """The success rates, read with this transaction if the cache is empty."""
        now = self._clock.monotonic()
        with self._lock:
            if self._cached is not None and 0 <= now - self._read_at < SUCCESS_RATES_FOR_S:
                return self._cached
        since = self._clock.now() - OUTCOME_AGE
        found = success_rates(work.outcomes.tallies(since), work.applied_fixes.counts(since))
        with self._lock:
            self._cached, self._read_at = found, now
        return found

    def clear(self) -> None:
        """Drop the cached success rates, because an outcome was stored."""
        with self._lock:
            self._cached = None
