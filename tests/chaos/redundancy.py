"""Rounds with redundant servers: fail-over of PostgreSQL to its replica, loss of one node of a Kafka cluster."""

import random
import time
from dataclasses import dataclass
from typing import Final

from tests.chaos.plans import Report
from tests.flows.crashes import TOPIC, Publisher, Round, Stored, Worker, until
from tests.labs.kafka_cluster import BrokerCluster
from tests.labs.postgres_pair import PostgresPair

FAIL_OVER: Final = "database fail-over"
LEADER: Final = "leading broker"
PARTITIONS: Final = 6


def drawn(seed: int, count: int, *, replica: bool, brokers: bool) -> list[str]:
    """So many faults of the redundant servers; the same seed gives the same."""
    possible = [name for name, there in ((FAIL_OVER, replica), (LEADER, brokers)) if there]
    return random.Random(seed).choices(possible, k=count)


@dataclass
class RedundancyRound(Round):
    """A round whose plan names faults of `drawn`. Recovery: from the kill until all released events are stored."""

    pair: PostgresPair | None = None
    cluster: BrokerCluster | None = None

    def _make(
        self,
        trouble: str,
        worker: Worker,
        rng: random.Random,
        report: Report,
        publisher: Publisher,
        stored: Stored,
    ) -> None:
        started = time.monotonic()
        if trouble == FAIL_OVER:
            assert self.pair is not None
            self.pair.fail_over(rng.uniform(0, 3))
        else:
            assert self.cluster is not None
            node = self.cluster.leader(TOPIC, rng.randrange(PARTITIONS))
            started = time.monotonic()
            node.kill()
        until(lambda: stored.count() >= publisher.events(released=True), "all released events are stored", worker)
        report.returns.setdefault(trouble, []).append(time.monotonic() - started)
        if trouble == FAIL_OVER and self.pair is not None:
            self.pair.attach_replica()
        elif self.cluster is not None:
            node.start()
            self.cluster.wait_until_whole(TOPIC)
