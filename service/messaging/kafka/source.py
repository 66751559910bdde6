"""A member of a Kafka consumer group that implements the protocol of `service.messaging.source`."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, OffsetAndMetadata
from kafka import TopicPartition as KafkaPartition
from kafka.admin import MemberToRemove
from kafka.consumer.subscription_state import ConsumerRebalanceListener

from service.backoff import Backoff
from service.errors import ConfigurationError, Unavailable
from service.messaging.kafka import bounded_codecs
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.connect import Fenced, connected, is_undecodable, quietly, translated
from service.messaging.record import Record, TopicPartition
from service.messaging.source import Committed

# A round of `poll` that ends this early, without records, has not waited for anything.
QUICK_S = 0.005
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.001, 0.1


class WaitingConsumer(KafkaConsumer):  # type: ignore[misc]  # kafka-python has no types
    """A consumer whose `poll` waits when the broker accepts connections but does not answer.

    While a heartbeat is overdue, kafka-python 3.0.12 repeats its rounds of `poll` without waiting and occupies a
    processor core until the request times out (30 s). Rounds that end at once without records are followed by growing
    pauses.

    A join that changed partitions started can end between two polls. kafka-python 3.0.12 then sees no reason to join
    and drops the answer: the member has no partitions and sends no heartbeats until the partitions change again. As
    long as a join is not finished, this consumer asks for one.
    """

    def __init__(self, *topics: str, **config: Any) -> None:
        super().__init__(*topics, **config)
        self._pauses = Backoff(first=FIRST_PAUSE_S, longest=LONGEST_PAUSE_S)

    def _poll_once(self, timer: Any, max_records: int, update_offsets: bool = True) -> Any:  # noqa: FBT001, FBT002 - the client's signature
        if self._coordinator.rejoining:
            self._coordinator.rejoin_needed = True
        began = time.monotonic()
        found = super()._poll_once(timer, max_records, update_offsets=update_offsets)
        if found or time.monotonic() - began > QUICK_S:
            self._pauses.reset()
        elif not timer.expired:
            time.sleep(min(self._pauses.next(), timer.timeout_ms / 1000))
        return found


log = logging.getLogger(__name__)

BOOTSTRAP_MS = 5_000
COMMIT_MS = 15_000
LAG_MS = 2_000
CLOSE_MS = 5_000
HEARTBEAT_MS = 3_000
# A record that this many new clients in a row could not decode is permanently undecodable.
UNDECODABLE_TRIES = 4
# Maximum delay until new partitions and topics are discovered.
METADATA_MS = 30_000


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    """Forwards partition changes reported by the client's thread; must return immediately."""

    def __init__(self, source: "KafkaSource") -> None:
        self._source = source

    def on_partitions_revoked(self, revoked: Collection[KafkaPartition]) -> None:
        self._source.note_revoked(revoked)

    def on_partitions_lost(self, lost: Collection[KafkaPartition]) -> None:
        self._source.note_revoked(lost)

    def on_partitions_assigned(self, assigned: Collection[KafkaPartition]) -> None:
        self._source.note_assigned(assigned)


class KafkaSource:
    """Reads raw records and commits offsets explicitly.

    The client is created by the first `poll` and again after every error in `poll`: an iterator of kafka-python that
    has raised once loops forever when used again.

    Args:
        config: broker, topics and group.
        member: the name of the static member, so that a restarted process gets its partitions back immediately;
            None: dynamic membership.
        make: creates the client.
    """

    def __init__(
        self, config: KafkaConfig, *, member: str | None = None, make: Callable[..., Any] = WaitingConsumer
    ) -> None:
        self._config = config
        self._clusters = config.clusters
        self._member = member
        self._make = make
        self._consumer: Any = None
        self._guard = threading.Lock()
        self._revoked: set[TopicPartition] = set()
        self._committed: dict[TopicPartition, int] = {}
        self._epochs: dict[TopicPartition, int] = {}
        self._paused = False
        self._fenced = False
        self._undecodable = 0

    def poll(self, max_records: int, timeout_s: float) -> list[Record]:
        """See `Source.poll`."""
        if self._consumer is None:
            self._connect()
        try:
            with translated("read"):
                fetched = self._consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=max_records)
        except Fenced:
            self._fenced = True
            raise
        except Unavailable as error:
            where = self._positions()
            self._drop()
            self._undecodable = self._undecodable + 1 if is_undecodable(error.__cause__) else 0
            if self._undecodable >= UNDECODABLE_TRIES:
                raise ConfigurationError(
                    f"a record can't be decoded by Kafka's client: {error.detail}. It is at or after one of {where};"
                    f" nothing after it is read until group {self._config.group_id} is set past it"
                    " (kafka-consumer-groups --reset-offsets)"
                ) from error
            raise
        self._undecodable = 0
        records: list[Record] = []
        for partition, found in fetched.items():
            if self._paused:
                self._consumer.seek(partition, found[0].offset)
                continue
            place = TopicPartition(*partition)
            self._epochs[place] = found[-1].leader_epoch
            cluster = self._clusters.get(place.topic, place.topic)
            records.extend(
                Record(
                    value=one.value,
                    headers=tuple((name, value or b"") for name, value in one.headers or ()),
                    topic=place.topic,
                    partition=place.partition,
                    offset=one.offset,
                    cluster=cluster,
                    key=one.key,
                )
                for one in found
            )
        return records

    def commit(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        """See `Source.commit`."""
        if self._consumer is None:
            raise Unavailable("Kafka: could not commit: not connected")
        ours = self._assigned() - self._pending_revocations()
        wanted = {
            KafkaPartition(*place): OffsetAndMetadata(offset, note, self._epochs.get(place, -1))
            for place, (offset, note) in offsets.items()
            if place in ours
        }
        if not wanted:
            return
        try:
            with translated("commit offsets"):
                self._consumer.commit(wanted, timeout_ms=COMMIT_MS)
        except Fenced:
            self._fenced = True
            raise
        self._committed.update({TopicPartition(*partition): one.offset for partition, one in wanted.items()})

    def committed(self, partition: TopicPartition) -> Committed | None:
        """See `Source.committed`."""
        if self._consumer is None:
            raise Unavailable("Kafka: could not ask for committed offsets: not connected")
        with translated("ask for committed offsets"):
            found = self._consumer.committed(KafkaPartition(*partition), metadata=True, timeout_ms=COMMIT_MS)
        return None if found is None or found.offset < 0 else Committed(found.offset, found.metadata or "")

    def take_revoked(self) -> frozenset[TopicPartition]:
        """See `Source.take_revoked`."""
        with self._guard:
            taken = frozenset(self._revoked)
            self._revoked.clear()
        return taken

    def pause(self) -> None:
        """See `Source.pause`."""
        self._paused = True
        if self._consumer is not None:
            self._consumer.pause(*self._consumer.assignment())

    def resume(self) -> None:
        """See `Source.resume`."""
        self._paused = False
        if self._consumer is not None:
            self._consumer.resume(*self._consumer.paused())

    def lag(self) -> Mapping[str, int]:
        """See `Source.lag`."""
        out = dict.fromkeys(self._clusters, 0)
        if self._consumer is None:
            raise Unavailable("Kafka: could not ask for the lag: not connected")
        with translated("ask for the lag"):
            assigned = list(self._consumer.assignment())
            if not assigned:
                return {}  # nothing was asked: while the broker is away, members lose their partitions
            ends = self._consumer.end_offsets(assigned, timeout_ms=LAG_MS)
            unknown = [one for one in assigned if TopicPartition(*one) not in self._committed]
            starts = self._consumer.beginning_offsets(unknown, timeout_ms=LAG_MS) if unknown else {}
            for partition in unknown:
                offset = self._consumer.committed(partition, timeout_ms=LAG_MS)
                self._committed[TopicPartition(*partition)] = starts[partition] if offset is None else offset
        for partition, end in ends.items():
            out[partition.topic] = out.get(partition.topic, 0) + max(
                0, end - self._committed[TopicPartition(*partition)]
            )
        return out

    def close(self) -> None:
        """See `Source.close`."""
        consumer, self._consumer = self._consumer, None
        if consumer is None:
            return
        identity = None
        if self._member is not None and not self._fenced:
            identity = consumer.group_metadata().member_id
        quietly("close the consumer", lambda: consumer.close(autocommit=False, timeout_ms=CLOSE_MS))
        if identity:
            quietly("leave the group", lambda: self._leave(identity))

    def note_revoked(self, partitions: Collection[KafkaPartition]) -> None:
        """Record revoked partitions (called by the client)."""
        places = {TopicPartition(*one) for one in partitions}
        with self._guard:
            self._revoked |= places
        for place in places:
            self._committed.pop(place, None)
        if places:
            log.info("partitions revoked: %s", ", ".join(f"{p.topic}/{p.partition}" for p in sorted(places)))

    def note_assigned(self, partitions: Collection[KafkaPartition]) -> None:
        """Record assigned partitions (called by the client before it fetches from them)."""
        if self._paused and self._consumer is not None:
            self._consumer.pause(*partitions)
        log.info(
            "partitions assigned: %s", ", ".join(sorted(f"{one.topic}/{one.partition}" for one in partitions)) or "-"
        )

    def _connect(self) -> None:
        config = self._config
        bounded_codecs.install()
        self._consumer = connected(
            self._make,
            **config.connection(),
            group_id=config.group_id,
            group_instance_id=self._member,
            client_id=self._member or f"faultline-{config.group_id}",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=config.session_timeout_ms,
            heartbeat_interval_ms=min(HEARTBEAT_MS, config.session_timeout_ms // 3),
            max_poll_interval_ms=config.max_poll_interval_ms,
            metadata_max_age_ms=METADATA_MS,
            bootstrap_timeout_ms=BOOTSTRAP_MS,
            reconnect_backoff_max_ms=2_000,
            fetch_max_bytes=config.fetch_bytes,
            max_partition_fetch_bytes=config.fetch_bytes // 4,
            receive_message_max_bytes=config.frame_bytes,
            metrics_enabled=False,
        )
        self._consumer.subscribe(sorted(self._clusters), listener=_Listener(self))

    def _drop(self) -> None:
        """Discard the client without leaving the group: the next client rejoins as the same member."""
        consumer, self._consumer = self._consumer, None
        self.note_revoked([KafkaPartition(*place) for place in self._assigned(consumer)])
        quietly("close the consumer", lambda: consumer.close(autocommit=False, timeout_ms=1_000))

    def _positions(self) -> str:
        """Describe the current position in each partition for messages."""
        found = []
        for one in sorted(self._consumer.assignment()):
            with suppress(Exception):  # positions are included as far as they are known
                found.append(f"{one.topic}/{one.partition}/{self._consumer.position(one, timeout_ms=500)}")
        return ", ".join(found)

    def _assigned(self, consumer: Any = None) -> set[TopicPartition]:
        chosen = consumer or self._consumer
        return {TopicPartition(*one) for one in chosen.assignment()}

    def _pending_revocations(self) -> set[TopicPartition]:
        with self._guard:
            return set(self._revoked)

    def _leave(self, identity: str) -> None:
        """Leave the group explicitly: the partitions of a static member would stay unread until its session expires."""
        admin = connected(KafkaAdminClient, **self._config.connection(), bootstrap_timeout_ms=BOOTSTRAP_MS)
        try:
            admin.remove_group_members(
                self._config.group_id, [MemberToRemove(member_id=identity, group_instance_id=self._member)]
            )
        finally:
            admin.close()
