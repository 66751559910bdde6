"""Metrics of the service, exposed at /metrics."""

import math

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Telemetry:
    """All metrics of the service, in their own registry, so that two services in one process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.events = Counter(
            "faultline_events",
            "Job completions handled, by outcome",
            ["outcome"],  # accepted, duplicate, conflict, skipped
            registry=self.registry,
        )
        self.event_problems = Counter(
            "faultline_event_problems",
            "Events with optional fields that could not be read, by source",
            ["source"],  # topic/NAME, api/TOKEN, file
            registry=self.registry,
        )
        self.dead_letters = Counter(
            "faultline_dead_letters", "Records that could not be read or handled", registry=self.registry
        )
        self.verdicts = Counter(
            "faultline_verdicts",
            "Failures diagnosed, by side and whether the verdict abstained",
            ["side", "abstained"],
            registry=self.registry,
        )
        self.revisions = Counter(
            "faultline_verdict_revisions", "Verdicts revised when evidence arrived later", registry=self.registry
        )
        self.logs_missing = Counter(
            "faultline_logs_missing",
            "Failures with a log that could not be read when they were diagnosed",
            registry=self.registry,
        )
        self.log_storage = Counter(
            "faultline_log_storage_operations",
            "Operations on logs in object storage, by outcome",
            ["operation", "outcome"],  # write: stored, kept_in_database; read: found, missing, failed; remove: removed
            registry=self.registry,
        )
        self.stage_seconds = Histogram(
            "faultline_stage_seconds",
            "Time a batch spent in each stage",
            ["stage"],  # known, logs, classify, store
            buckets=SECONDS,
            registry=self.registry,
        )
        self.lag = Gauge(
            "faultline_consumer_lag_records", "Records on the topics not yet stored", ["topic"], registry=self.registry
        )
        self.deliveries = Counter(
            "faultline_deliveries",
            "Delivery attempts, by endpoint and outcome",
            ["endpoint", "outcome"],  # sent, retry, refused, gone
            registry=self.registry,
        )
        self.security_events = Counter(
            "faultline_security_events",
            "Log-ins, failed log-ins, refused requests, exports and other events of security, by kind",
            ["event"],
            registry=self.registry,
        )
        self.second_reader_requests = Counter(
            "faultline_second_reader_requests",
            "Questions to the second reader, by outcome",
            ["outcome"],  # answered, undecided, invalid, no_answer, circuit_open, hourly_limit
            registry=self.registry,
        )
        self.second_reader_tokens = Counter(
            "faultline_second_reader_tokens",
            "Tokens that the second reader reports",
            ["kind"],  # prompt, completion
            registry=self.registry,
        )
        self.second_reader_seconds = Histogram(
            "faultline_second_reader_seconds",
            "Time until the second reader answers or fails",
            buckets=SECONDS,
            registry=self.registry,
        )
        self.drift_share = Gauge(
            "faultline_drift_share",
            "Measures of drift, 0 to 1 (confidence: minus audited accuracy), by period",
            ["cluster", "measure", "window"],  # window: recent, reference
            registry=self.registry,
        )
        self.drift_changed = Gauge(
            "faultline_drift_changed",
            "1 if a measure grew beyond its interval since the reference period, -1 if it fell, else 0",
            ["cluster", "measure"],
            registry=self.registry,
        )
        self.drift_new_versions = Gauge(
            "faultline_drift_new_versions",
            "Versions of frameworks and drivers that only recent logs name",
            ["cluster"],
            registry=self.registry,
        )
        self.task_success = Gauge(
            "faultline_task_success_timestamp_seconds",
            "When a periodic task last ended without an error in this process, at first when the process began",
            ["task"],  # retention, sealing of verdicts, ...
            registry=self.registry,
        )
        self.database_up = Gauge(
            "faultline_database_up",
            "1 while the database answers the consumer, 0 while it does not, NaN in a process that does not consume",
            registry=self.registry,
        )
        self.database_up.set(math.nan)  # 0, the default, would be an outage

    def render(self) -> bytes:
        """The metrics in the Prometheus text format."""
        return generate_latest(self.registry)
