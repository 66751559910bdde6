"""Background work on nodes: counts new attempts and verdicts, refreshes old suspicion, and fits priors."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from service.clock import Clock
from service.db.session import Store, UnitOfWork
from service.errors import ConfigurationError, Unavailable
from service.nodes.counting import count, day_of, fit_priors, refresh
from service.nodes.records import FleetSettings, NodePlace, Window
from service.nodes.repository.suspicion import Key
from service.nodes.repository.work_queue import NodeWork
from service.periodic import in_portions

log = logging.getLogger(__name__)

AT_ONCE = 4  # work items per transaction, so that other writers do not wait long
ROUNDS = 50
STALE = timedelta(hours=1)
STALE_AT_ONCE = 500
NAME = 200  # characters of a node's name that are stored
REMOVE_EVERY = timedelta(minutes=5)
PRIOR_EVERY = timedelta(hours=1)
REASSESSED_AFTER = timedelta(minutes=10)  # since a failure was counted: its node events arrive meanwhile


class NodeStatisticsUpdater:
    """Called periodically by workers and servers; one process at a time does the work."""

    def __init__(self, store: Store, clock: Clock, settings: FleetSettings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._next_removal = clock.now()

    def __call__(self) -> int:
        """Do pending work, within bounds; returns the number of work items.

        Raises:
            Unavailable: the database does not answer; completed work remains.
        """
        done = 0
        for _ in range(ROUNDS):
            with self._store.reading() as reading:
                if not reading.node_work.any():
                    break
            done += self._some()
        self._keep_fresh()
        self._remove()
        return done

    def _some(self) -> int:
        """Do a few work items; returns their number."""
        try:
            with self._store.unit_of_work() as work:
                taken = work.node_work.take(AT_ONCE)
                self._do(work, taken)
            return len(taken)
        except (Unavailable, ConfigurationError):
            raise
        except Exception:
            log.exception("nodes could not be counted; the work is divided")
            return self._one()

    def _one(self) -> int:
        """Do one work item. One that fails is divided, and left out where that is not possible: it stops no others."""
        taken: list[NodeWork] = []
        try:
            with self._store.unit_of_work() as work:
                taken = work.node_work.take(1)
                self._do(work, taken)
        except (Unavailable, ConfigurationError):
            raise
        except Exception:
            if not taken:
                raise
            [failed] = taken
            half = len(failed.body) // 2
            if not half:
                log.exception("%s %s cannot be counted for nodes, and are left out", failed.kind, failed.body)
            with self._store.unit_of_work() as work:
                if work.node_work.remove(failed.id) and half:
                    work.node_work.add(failed.kind, failed.body[:half])
                    work.node_work.add(failed.kind, failed.body[half:])
        return len(taken)

    def _remove(self) -> None:
        """Remove data that is too old to count, in small batches."""
        now = self._clock.now()
        if now < self._next_removal:
            return
        self._next_removal = now + REMOVE_EVERY
        if self._settings.keep_events is not None:
            before = now - self._settings.keep_events
            in_portions(lambda: self._remove_events(before))
        with self._store.unit_of_work() as work:
            work.failure_facts.remove_weights()
            work.suspicion.remove_days(day_of(now) - self._settings.horizon_days)

    def _remove_events(self, before: datetime) -> bool:
        with self._store.unit_of_work() as work:
            return work.node_events.remove(before) > 0

    def _do(self, work: UnitOfWork, taken: Sequence[NodeWork]) -> None:
        now = self._clock.now()
        jobs = {int(number) for piece in taken if piece.kind == "jobs" for number in piece.body}
        failures = {int(number) for piece in taken if piece.kind == "failures" for number in piece.body}
        counted = count(work, jobs, failures)
        again = {one.id: now + REASSESSED_AFTER for one in counted.failures}
        windows = [_window(row) for piece in taken if piece.kind == "events" for row in piece.body]
        with_events: set[Key] = {(window.cluster, window.name) for window in windows}
        since = min((window.since for window in windows), default=now)
        for number in work.failure_facts.ids_on_nodes(windows):
            again[number] = now
        work.node_work.recheck(again)
        refresh(
            work,
            {*counted.nodes, *with_events},
            now=now,
            settings=self._settings,
            last_failure=counted.nodes,
            last_event=work.node_events.latest(with_events, since=since, until=now),
        )
        work.suspicion.set_places(
            {
                (cluster, node): NodePlace(*place)
                for piece in taken
                if piece.kind == "places"
                for cluster, node, *place in piece.body
            }
        )

    def _keep_fresh(self) -> None:
        """Refresh the suspicion of nodes whose counts have decayed, and the priors."""
        now = self._clock.now()
        with self._store.reading() as reading:
            stale = reading.suspicion.stalest(now - STALE, limit=STALE_AT_ONCE)
            priors = reading.suspicion.priors()
            clusters = reading.suspicion.clusters()
        late = [name for name in clusters if name not in priors or now - priors[name].computed_at >= PRIOR_EVERY]
        if not stale and not late:
            return
        with self._store.unit_of_work() as work:
            work.node_work.counting()
            fit_priors(work, late, now=now)
            keys = set(stale)
            for cluster in late:
                if cluster not in priors:  # its nodes have not been compared yet
                    page = work.suspicion.page(cluster=cluster, limit=STALE_AT_ONCE)
                    keys |= {(row.cluster, row.node) for row in page.items}
            refresh(work, keys, now=now, settings=self._settings)


def _window(row: Sequence[Any]) -> Window:
    cluster, node, since, until = row
    return Window(cluster, node[:NAME], datetime.fromisoformat(since), datetime.fromisoformat(until))
