"""A Kafka topic of verdicts, keyed by job, so that all messages of a job are in one partition."""

from collections.abc import Callable, Sequence

import orjson

from service.deliveries.channels.channel import SENT, Outcome, message_id, timestamp
from service.deliveries.records import DueDelivery
from service.errors import FaultlineError, TooLarge
from service.messaging.record import Message, MessageProducer


class TopicChannel:
    """Writes batches to a topic; `prepare` creates the topic if needed, before the first batch."""

    bulk = True

    def __init__(self, topic: str, producer: MessageProducer, prepare: Callable[[], object]) -> None:
        self._topic = topic
        self._producer = producer
        self._prepare = prepare
        self._prepared = False

    def send(self, messages: Sequence[DueDelivery]) -> Outcome:
        """Send all messages, in their order."""
        ordered = sorted(messages, key=lambda message: message.message_id)
        try:
            if not self._prepared:
                self._prepare()
                self._prepared = True
            self._producer.send(self._topic, [record(message) for message in ordered])
        except TooLarge as error:
            return Outcome("refused", error.detail)
        except FaultlineError as error:
            return Outcome("retry", error.detail)
        return SENT

    def close(self) -> None:
        """Close the producer."""
        self._producer.close()


def record(message: DueDelivery) -> Message:
    """{id, type, timestamp, data} under the job's key; `id` is the same for repeated messages."""
    identity = message_id(message)
    value = orjson.dumps(
        {"id": identity, "type": message.type, "timestamp": timestamp(message), "data": message.payload}
    )
    return Message(value, message.key.encode(), (("id", identity.encode()), ("type", message.type.encode())))
