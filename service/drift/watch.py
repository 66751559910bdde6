"""Compares recent failures with earlier ones every hour, on one process, and publishes the figures as metrics.

It shows and alerts; it never retrains.
"""

import logging
import secrets
from datetime import datetime, timedelta
from typing import Final

from classifiers.redaction import redact
from service.clock import Clock
from service.db.session import Store
from service.drift.comparison import Period, compare
from service.drift.records import DriftReport
from service.telemetry import Telemetry

TASK: Final = "drift"
LEASE: Final = timedelta(minutes=30)
# Judgement: a week holds every weekday once; four weeks before it are enough to compare with.
RECENT: Final = timedelta(days=7)
REFERENCE: Final = timedelta(days=28)
# Forty failures are audited a week, so that their periods are four times as long.
AUDITS: Final = 4
_log = logging.getLogger(__name__)


class DriftWatch:
    """Makes the report of each hour, and keeps the metrics of this process at the newest one.

    Args:
        store: the failures and the reports.
        clock: the current time.
        telemetry: the metrics.
    """

    def __init__(self, store: Store, clock: Clock, telemetry: Telemetry) -> None:
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        self._holder = f"drift-{secrets.token_hex(6)}"
        self._published = 0

    def __call__(self) -> None:
        """Make the report of this hour if no process made it, and publish the newest one.

        Raises:
            Unavailable: the database does not answer; the next call continues.
        """
        hour = f"{self._clock.now():%Y-%m-%dT%H}"
        with self._store.reading() as reading:
            last = reading.task_leases.last(TASK)
        if last != hour:
            self._make(hour)
        with self._store.reading() as reading:
            newest = reading.drift.latest_id()
            report = reading.drift.latest() if newest != self._published else None
        if report is not None:
            publish_metrics(self._telemetry, report)
            self._published = newest

    def _make(self, hour: str) -> None:
        with self._store.unit_of_work() as work:
            if not work.task_leases.take(TASK, self._holder, due=hour, lease=LEASE):
                return
        report = report_of(self._store, self._clock.now())
        with self._store.unit_of_work() as work:
            if work.task_leases.done(TASK, self._holder, due=hour):
                work.drift.store(report)
        changed = [(one.cluster, figure.measure) for one in report.clusters for figure in one.changed]
        if changed:
            _log.info("drift: %s", ", ".join(f"{measure} on {cluster}" for cluster, measure in changed))


def report_of(store: Store, now: datetime) -> DriftReport:
    """The comparison of the last week with the four weeks before.

    Raises:
        Unavailable: the database does not answer.
    """
    recent, reference = now - RECENT, now - RECENT - REFERENCE
    audits, audits_reference = now - AUDITS * RECENT, now - AUDITS * (RECENT + REFERENCE)
    with store.reading() as reading:
        found = reading.drift
        clusters = compare(
            Period(found.groups(recent, now), found.audited(audits, now), found.versions(recent, now)),
            Period(
                found.groups(reference, recent),
                found.audited(audits_reference, audits),
                found.versions(reference, recent),
            ),
        )
        return DriftReport(
            at=now,
            recent_since=recent,
            reference_since=reference,
            audits_since=audits,
            audits_reference_since=audits_reference,
            clusters=found.with_headlines(clusters),
        )


def publish_metrics(telemetry: Telemetry, report: DriftReport) -> None:
    """Set the metrics to a report; clusters that it does not name are removed."""
    for gauge in (telemetry.drift_share, telemetry.drift_changed, telemetry.drift_new_versions):
        gauge.clear()
    for cluster in report.clusters:
        name = redact(cluster.cluster)  # the name is a producer's text, and part of its jobs' identity as it is
        telemetry.drift_new_versions.labels(name).set(len(cluster.versions))
        for one in cluster.figures:
            telemetry.drift_changed.labels(name, one.measure).set(one.change)
            for window, figure in (("recent", one.recent), ("reference", one.reference)):
                if figure is not None:
                    telemetry.drift_share.labels(name, one.measure, window).set(figure.value)
