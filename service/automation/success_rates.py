"""How resubmits ended so far, as advice reads it: kept for a few seconds in each process, read by whole tables."""

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.automation.time_limits import OUTCOMES_COUNT, SUCCESS_RATES_FOR_S
from service.clock import Clock
from service.db.session import UnitOfWork
from service.feedback.repository.applied_fixes import FixCount
from service.recommend.facts import History, Plan, Tally
from service.requests.records import TallyRow


@dataclass(frozen=True, slots=True)
class SuccessRates:
    """Tallies by (cluster, cause), each by plan: under any policy, and by policy.

    `mended`: by (cluster, cause), how many failures each mitigation ended, as people said.
    """

    overall: Mapping[tuple[str, str], Mapping[Plan, Tally]] = field(default_factory=dict)
    by_policy: Mapping[tuple[str, str, str], Mapping[Plan, Tally]] = field(default_factory=dict)
    mended: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)

    def history(self, cluster: str, cause: str, policy: str) -> History:
        """What advice on a failure of this cause reads."""
        resubmits, mended = self.overall.get((cluster, cause), {}), self.mended.get((cluster, cause), {})
        if not resubmits and not mended:
            return NO_HISTORY
        helped = sum(tally.helped for tally in resubmits.values())
        resubmitted = {"M1": helped + mended.get("M1", 0)} if helped else {}
        return History(
            resolved_by={**mended, **resubmitted},
            resubmits=resubmits,
            under_policy=self.by_policy.get((cluster, cause, policy), {}),
        )


NO_HISTORY = History()


def success_rates(rows: list[TallyRow], counts: Sequence[FixCount] = ()) -> SuccessRates:
    """From the store's tallies and counts."""
    overall: dict[tuple[str, str], dict[Plan, Tally]] = defaultdict(dict)
    by_policy: dict[tuple[str, str, str], dict[Plan, Tally]] = defaultdict(dict)
    for row in rows:
        if row.helped + row.failed == 0:
            continue
        before = overall[row.cluster, row.cause].get(row.plan, Tally())
        overall[row.cluster, row.cause][row.plan] = Tally(before.helped + row.helped, before.failed + row.failed)
        by_policy[row.cluster, row.cause, row.policy][row.plan] = Tally(row.helped, row.failed)
    mended: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for count in counts:
        mended[count.cluster, count.cause][count.code] = count.many
    return SuccessRates(dict(overall), dict(by_policy), dict(mended))


class SuccessRateCache:
    """The success_rates, read again when they are some seconds old or an outcome came in here."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: SuccessRates | None = None
        self._read_at = 0.0

    def get(self, work: UnitOfWork) -> SuccessRates:
        """The success_rates as this transaction may use them."""
        now = self._clock.monotonic()
        with self._lock:
            if self._kept is not None and 0 <= now - self._read_at < SUCCESS_RATES_FOR_S:
                return self._kept
        since = self._clock.now() - OUTCOMES_COUNT
        found = success_rates(work.outcomes.tallies(since), work.applied_fixes.counts(since))
        with self._lock:
            self._kept, self._read_at = found, now
        return found

    def forget(self) -> None:
        """Something changed them."""
        with self._lock:
            self._kept = None
