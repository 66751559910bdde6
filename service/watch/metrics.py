"""Metrics of the watcher."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class WatcherMetrics:
    """Every metric of one watcher, in its own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.ends = Counter(
            "faultline_watch_ends", "Ends of jobs and pods told", ["kind", "status"], registry=self.registry
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
            "faultline_watch_dropped", "Ends too large to be told even without their logs", registry=self.registry
        )
        self.logs_missing = Counter(
            "faultline_watch_logs_missing", "Containers whose log could not be read", registry=self.registry
        )
        self.notes = Counter("faultline_watch_node_events", "Events of nodes told", registry=self.registry)
        self.notes_dropped = Counter(
            "faultline_watch_node_events_dropped", "Events of nodes that could not be told", registry=self.registry
        )
        self.heard = Gauge(
            "faultline_watch_heard_timestamp_seconds",
            "When the cluster was last heard of",
            ["collection"],
            registry=self.registry,
        )
        self.saved = Gauge(
            "faultline_watch_saved_timestamp_seconds",
            "When the state was last written: all that was seen until then has arrived",
            registry=self.registry,
        )
