"""Creates missing topics."""

from kafka import KafkaAdminClient, errors
from kafka.admin import NewTopic

from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.connect import connected, quietly, translated

ASK_MS = 5_000
BROKERS_DEFAULT = -1


def ensure_topic(config: KafkaConfig, topic: str) -> bool:
    """Create `topic` with the broker's defaults if it does not exist; return whether it was created.

    Raises:
        Unavailable: the broker does not answer.
        ConfigurationError: the broker does not allow it.
    """
    settings = config.connection() | {"request_timeout_ms": ASK_MS}
    admin = connected(KafkaAdminClient, **settings, bootstrap_timeout_ms=ASK_MS)
    try:
        with translated(f"make the topic {topic}"):
            if topic in admin.list_topics():
                return False
            try:
                admin.create_topics([NewTopic(topic, BROKERS_DEFAULT, BROKERS_DEFAULT)])
            except errors.TopicAlreadyExistsError:
                return False
            return True
    finally:
        quietly("close the client", admin.close)
