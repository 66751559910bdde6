"""A Kafka topic of verdicts, keyed by job, so that all of one job lie in one partition."""

from collections.abc import Callable, Sequence
from typing import Protocol

import orjson

from service.deliveries.channels.channel import SENT, Outcome, message_id, timestamp
from service.deliveries.records import DueDelivery
from service.errors import FaultlineError, TooLarge
from service.messaging.record import Message


class Sender(Protocol):
    """What the channel asks of the producer (service.messaging.kafka.producer.Producer)."""

    def send(self, topic: str, messages: Sequence[Message]) -> None:
        """Return when the broker has them all."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class TopicChannel:
    """Puts batches on a topic; `prepare` makes the topic where it is not there, before the first one."""

    bulk = True

    def __init__(self, topic: str, sender: Sender, prepare: Callable[[], object]) -> None:
        self._topic = topic
        self._sender = sender
        self._prepare = prepare
        self._prepared = False

    def send(self, messages: Sequence[DueDelivery]) -> Outcome:
        """Tell them all, in the order of their making."""
        ordered = sorted(messages, key=lambda message: message.message_id)
        try:
            if not self._prepared:
                self._prepare()
                self._prepared = True
            self._sender.send(self._topic, [record(message) for message in ordered])
        except TooLarge as error:
            return Outcome("refused", error.detail)
        except FaultlineError as error:
            return Outcome("retry", error.detail)
        return SENT

    def close(self) -> None:
        """End the producer."""
        self._sender.close()


def record(message: DueDelivery) -> Message:
    """{id, type, timestamp, data} under the job's key; `id` is the same however often it comes."""
    identity = message_id(message)
    value = orjson.dumps(
        {"id": identity, "type": message.type, "timestamp": timestamp(message), "data": message.payload}
    )
    return Message(value, message.key.encode(), (("id", identity.encode()), ("type", message.type.encode())))
