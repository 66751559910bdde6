"""Sends messages (events, dead letters, verdicts) to topics and waits until the broker has acknowledged them."""

import threading
import time
from collections.abc import Sequence
from typing import Any

from kafka import KafkaProducer, errors

from service.errors import TooLarge, Unavailable
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.connect import connected, describe, quietly, translated
from service.messaging.record import Message

BOOTSTRAP_MS = 5_000
CLOSE_S = 5.0
# Larger than any event; the broker enforces its own limit.
LARGEST_REQUEST = 200 * 1024 * 1024
_TOO_LARGE = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError, errors.InvalidRecordError)


class Producer:
    """Sends with acks from all replicas. Safe to share between threads; the client is created on first use.

    Args:
        config: broker and credentials.
        delivery_s: seconds that one `send` tries before it raises Unavailable.
        make: creates the client.
    """

    def __init__(self, config: KafkaConfig, *, delivery_s: float = 20.0) -> None:
        self._config = config
        self._delivery_s = delivery_s
        self._client: Any = None
        self._lock = threading.Lock()

    def send(self, topic: str, messages: Sequence[Message]) -> None:
        """Send messages in order (per key); returns when the broker has acknowledged all.

        Raises:
            TooLarge: a message exceeds the broker's limit; others may have been stored.
            Unavailable: some messages were not acknowledged; sending again may duplicate the others.
            ConfigurationError: the broker refuses permanently.
        """
        with self._lock:
            try:
                self._send(topic, messages)
            except (Unavailable, TooLarge):  # after either, an idempotent client of kafka-python sends nothing more
                self._drop(undelivered=True)
                raise

    def close(self) -> None:
        """Close the client; messages for which `send` returned are stored. Never raises."""
        with self._lock:
            self._drop()

    def _send(self, topic: str, messages: Sequence[Message]) -> None:
        if self._client is None:
            self._client = self._connect()
        client = self._client
        with translated(f"send to {topic}"):
            try:
                waiting = [
                    client.send(topic, value=one.value, key=one.key, headers=list(one.headers)) for one in messages
                ]
                deadline = time.monotonic() + self._delivery_s + 1
                for one in waiting:
                    one.get(timeout=max(0.1, deadline - time.monotonic()))
            except _TOO_LARGE as error:
                raise TooLarge(f"Kafka: the broker does not take a message for {topic}: {describe(error)}") from error
            except errors.UnknownTopicOrPartitionError as error:
                raise Unavailable(f"Kafka: there is no topic {topic}") from error

    def _connect(self) -> Any:
        milliseconds = int(self._delivery_s * 1000)
        return connected(
            KafkaProducer,
            **(self._config.connection() | {"request_timeout_ms": milliseconds // 2}),
            client_id=f"faultline-{self._config.group_id}-producer",
            acks="all",
            linger_ms=5,
            batch_size=256 * 1024,
            compression_type="lz4",
            max_request_size=LARGEST_REQUEST,
            delivery_timeout_ms=milliseconds,
            max_block_ms=milliseconds,
            bootstrap_timeout_ms=BOOTSTRAP_MS,
            reconnect_backoff_max_ms=2_000,
            metrics_enabled=False,
        )

    def _drop(self, *, undelivered: bool = False) -> None:
        client, self._client = self._client, None
        if client is not None:
            quietly("close the producer", lambda: _close(client, undelivered=undelivered))


def _close(client: Any, *, undelivered: bool) -> None:
    """Close a client and its threads; `close` of kafka-python leaves them running after a failed delivery."""
    if not undelivered:
        try:
            client.close(timeout=CLOSE_S)
        except errors.KafkaError:
            undelivered = True
    if undelivered:
        client._sender.force_close()  # noqa: SLF001 - there is no other way to discard batches
        client._sender.join(CLOSE_S)  # noqa: SLF001 - as above
        client.close(timeout=CLOSE_S)
