"""The suspicion of nodes as of an earlier time, computed from the days before it."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.db.session import ReadSession
from service.nodes.counting import DAY, day_of
from service.nodes.empirical_bayes import Prior, Ratio, decayed, ratio
from service.nodes.records import FleetSettings, NodeDay


@dataclass(frozen=True, slots=True)
class PastSuspicion:
    """A node with its rate ratio, and the decayed failures and node-hours behind it."""

    cluster: str
    node: str
    ratio: Ratio
    weighted_failures: float
    hours: float


def suspicion_at(reading: ReadSession, at: datetime, settings: FleetSettings) -> list[PastSuspicion]:
    """The nodes that failed significantly more often than their cluster's fleet, most suspected first.

    Days (UTC) that begin before `at` count. Days before a repair are not stored any more and do not count.
    """
    last = day_of(at - timedelta(microseconds=1)) + 1
    days: defaultdict[tuple[str, str], list[NodeDay]] = defaultdict(list)
    for day in reading.suspicion.days_of_failures(last - settings.horizon_days, last):
        days[day.cluster, day.node].append(day)
    priors, half_life = reading.suspicion.priors(), settings.half_life / DAY
    found = []
    for (cluster, node), own in days.items():
        hours = sum(day.exposure_h * decayed(last - 1 - day.day, half_life) for day in own)
        failures = max(0.0, sum(day.blame * decayed(last - 1 - day.day, half_life) for day in own))
        prior = Prior(priors[cluster].rate, priors[cluster].shape) if cluster in priors else Prior()
        estimate = ratio(failures, hours, prior)
        if estimate.low > 1:
            found.append(PastSuspicion(cluster, node, estimate, failures, hours))
    return sorted(found, key=lambda one: (-one.ratio.mean, one.cluster, one.node))
