"""Metrics of the watcher."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class WatcherMetrics:
    """Every metric of one watcher, in its own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.ends = Counter(
            "faultline_watch_ends", "Ends of jobs and pods that were sent", ["kind", "status"], registry=self.registry
        )
        self.unreadable = Counter(
            "faultline_watch_unreadable", "Objects that could not be read", ["kind"], registry=self.registry
        )
        self.vanished = Counter(
            "faultline_watch_vanished",
            "Jobs and pods that ended or were deleted while nobody watched",
            ["kind"],
            registry=self.registry,
        )
        self.dropped = Counter(
            "faultline_watch_dropped",
            "Ends that were too large to send even without their logs",
            registry=self.registry,
        )
        self.logs_missing = Counter(
            "faultline_watch_logs_missing", "Containers whose log could not be read", registry=self.registry
        )
        self.node_events = Counter(
            "faultline_watch_node_events", "Events of nodes that were sent", registry=self.registry
        )
        self.node_events_dropped = Counter(
            "faultline_watch_node_events_dropped", "Events of nodes that could not be sent", registry=self.registry
        )
        self.last_message = Gauge(
            "faultline_watch_heard_timestamp_seconds",
            "Time of the last message from the cluster",
            ["collection"],
            registry=self.registry,
        )
        self.saved = Gauge(
            "faultline_watch_saved_timestamp_seconds",
            "When the state was last written: all that was seen until then has arrived",
            registry=self.registry,
        )
