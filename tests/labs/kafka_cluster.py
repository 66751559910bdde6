"""A real Kafka cluster on loopback: each node is broker and controller, and can be killed and started again."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from service.messaging.kafka.connect import NetClient
from tests.labs.kafka import Broker, Cluster, jars, new_id
from tests.labs.need import need
from tests.labs.ports import free_port

WHOLE_SECONDS = 300


@dataclass
class BrokerCluster:
    """The nodes. A topic has a copy on each node, and a record is acknowledged by a majority of them."""

    nodes: list[Broker]

    @property
    def address(self) -> str:
        """The value for FAULTLINE_KAFKA_BOOTSTRAP_SERVERS: every node."""
        return ",".join(node.address for node in self.nodes)

    def create_topic(self, name: str, partitions: int = 3) -> str:
        """Create a topic with a copy on each node; return its name."""
        admin = self._admin()
        try:
            admin.create_topics([NewTopic(name, partitions, len(self.nodes))])
        finally:
            admin.close()
        return name

    def leader(self, topic: str, partition: int = 0) -> Broker:
        """Return the node that leads a partition."""
        return self.nodes[int(self._partitions(topic)[partition]["leader_id"]) - 1]

    def wait_until_whole(self, topic: str) -> None:
        """Wait until every node has an up-to-date copy of every partition."""
        deadline = time.monotonic() + WHOLE_SECONDS
        while time.monotonic() < deadline:
            with suppress(KafkaError):
                if all(len(one["isr_nodes"]) == len(self.nodes) for one in self._partitions(topic).values()):
                    return
            time.sleep(0.2)
        raise RuntimeError(f"{topic}: not every node has a copy within {WHOLE_SECONDS} s")

    def _partitions(self, topic: str) -> dict[int, dict[str, Any]]:
        admin = self._admin()
        try:
            [found] = admin.describe_topics([topic])
        finally:
            admin.close()
        return {int(one["partition_index"]): one for one in found["partitions"]}

    def _admin(self) -> KafkaAdminClient:
        servers = self.address.split(",")
        return KafkaAdminClient(bootstrap_servers=servers, bootstrap_timeout_ms=10_000, kafka_client=NetClient)


@contextmanager
def broker_cluster(count: int = 3) -> Iterator[BrokerCluster]:
    """Yield a running cluster of `count` nodes."""
    need("java", "setpriv")
    libs = jars()
    folder = Path(tempfile.mkdtemp(prefix="faultline-kafka-"))
    controllers, name = tuple(free_port() for _ in range(count)), new_id()
    nodes = []
    for node in range(1, count + 1):
        home = folder / str(node)
        home.mkdir()
        nodes.append(Broker(home, libs, free_port(), free_port(), cluster=Cluster(node, controllers, name)))
    try:
        for one in nodes:
            one.launch()
        for one in nodes:
            one.wait()
        yield BrokerCluster(nodes)
    finally:
        for one in nodes:
            one.kill()
        shutil.rmtree(folder, ignore_errors=True)
