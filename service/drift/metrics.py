"""The newest report on drift as metrics."""

from service.drift.records import DriftReport
from service.telemetry import Telemetry


def publish(telemetry: Telemetry, report: DriftReport) -> None:
    """Set the metrics to a report; clusters that it does not name are removed."""
    for gauge in (telemetry.drift_share, telemetry.drift_changed, telemetry.drift_new_versions):
        gauge.clear()
    for cluster in report.clusters:
        telemetry.drift_new_versions.labels(cluster.cluster).set(len(cluster.versions))
        for one in cluster.figures:
            telemetry.drift_changed.labels(cluster.cluster, one.measure).set(one.change)
            for window, figure in (("recent", one.recent), ("reference", one.reference)):
                if figure is not None:
                    telemetry.drift_share.labels(cluster.cluster, one.measure, window).set(figure.value)
