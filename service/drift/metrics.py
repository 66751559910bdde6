"""The newest report on drift as metrics."""

from classifiers.redaction import redact
from service.drift.records import DriftReport
from service.telemetry import Telemetry


def publish(telemetry: Telemetry, report: DriftReport) -> None:
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
