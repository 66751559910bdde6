"""Reads the lag of the consumer group without joining it, for health checks and metrics of other processes."""

import threading
from collections.abc import Mapping
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec

from service.errors import FaultlineError, Unavailable
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.connect import connected, quietly, translated
from service.telemetry import Telemetry

ASK_MS = 3_000


class LagReader:
    """Reads end offsets and committed offsets. Safe to share between threads; calls are serialized."""

    def __init__(self, config: KafkaConfig) -> None:
        self._config = config
        self._admin: Any = None
        self._lock = threading.Lock()

    def read(self) -> Mapping[str, int]:
        """Return the lag in records by topic: end offset minus committed offset; 0 for a missing topic.

        Raises:
            Unavailable: the broker does not answer.
            ConfigurationError: the broker refuses the request.
        """
        with self._lock:
            if self._admin is None:
                settings = self._config.connection() | {"request_timeout_ms": ASK_MS}
                self._admin = connected(KafkaAdminClient, **settings, bootstrap_timeout_ms=ASK_MS)
            try:
                with translated("ask for the lag"):
                    return self._ask()
            except Unavailable:
                self._drop()
                raise

    def measure(self, telemetry: Telemetry) -> None:
        """Set the metric of the lag.

        Raises:
            Unavailable: the broker does not answer; the metric is absent until it does.
            ConfigurationError: the broker refuses the request; as above.
        """
        try:
            lag = self.read()
        except FaultlineError:
            telemetry.lag.clear()
            raise
        for topic, records in lag.items():
            telemetry.lag.labels(topic).set(records)

    def close(self) -> None:
        """Close the client. Never raises."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            quietly("close the client", admin.close)

    def _ask(self) -> Mapping[str, int]:
        wanted = set(self._config.clusters)
        out = dict.fromkeys(wanted, 0)
        there = self._admin.describe_topics(sorted(wanted & set(self._admin.list_topics())))
        partitions = [
            TopicPartition(topic["name"], one["partition_index"]) for topic in there for one in topic["partitions"]
        ]
        if not partitions:
            return out
        group = self._config.group_id
        committed = self._admin.list_group_offsets({group: partitions})[group]
        first = self._admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
        last = self._admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
        for partition in partitions:
            stored = committed.get(partition)
            start = first[partition].offset if stored is None or stored.offset < 0 else stored.offset
            out[partition.topic] += max(0, last[partition].offset - start)
        return out
