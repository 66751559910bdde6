"""Repairs of nodes: earlier attempts and failures no longer count."""

from datetime import datetime

from service.db.session import UnitOfWork
from service.nodes.counting import DAY, day_of, refresh, start_of
from service.nodes.records import DaySums, Window
from service.nodes.settings import FleetSettings

FAILURES_MOST = 2_000


def clear(
    work: UnitOfWork,
    cluster: str,
    node: str,
    *,
    at: datetime,
    by: str | None,
    note: str | None,
    now: datetime,
    settings: FleetSettings,
) -> bool:
    """Record a repair and compute the node's suspicion again; False if a later repair is known (nothing changes).

    The exposure of the day of the repair is reduced in proportion to the remaining time; failures count if they ended
    after it.
    """
    work.node_work.counting()
    if not work.repairs.note(cluster, node, at=at, by=by, text=note):
        return False
    day = day_of(at)
    stored = {one.day: one for one in work.suspicion.days([(cluster, node)], since=day)}
    of_day = stored.get(day)
    work.suspicion.set_day(cluster, node, day - 1, None)
    if of_day is not None:
        begun, ended = start_of(day), min(max(now, at), start_of(day) + DAY)
        left = (ended - at) / (ended - begun) if ended > begun else 0.0
        numbers = work.failure_facts.ids_on_nodes([Window(cluster, node, at, start_of(day + 1))], most=FAILURES_MOST)
        weights = work.failure_facts.weights(numbers).values()
        after = [one for one in weights if one.cluster == cluster and at < one.ended_at < start_of(day + 1)]
        remainder = DaySums(
            of_day.exposure_h * left,
            round(of_day.jobs * left),
            min(of_day.failures, len(numbers)),
            sum(one.weights.get(node, 0.0) for one in after),
        )
        work.suspicion.set_day(cluster, node, day, remainder)
    refresh(work, {(cluster, node)}, now=now, settings=settings)
    return True
