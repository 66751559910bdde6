"""Configuration of the Kafka client: broker, credentials, topics and group; set by the composition root."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from service.errors import ConfigurationError, FieldError

# Kafka's rule for topic names, which also applies to group instance ids.
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def is_topic(name: str) -> bool:
    """Whether Kafka accepts a name of a topic."""
    return _NAME.fullmatch(name) is not None and name not in {".", ".."}


def topic_clusters(topics: tuple[str, ...]) -> dict[str, str]:
    """Parse entries `topic` or `topic=cluster` to {topic: cluster}; the default cluster is the topic's name.

    Raises:
        ConfigurationError: an entry is wrong; the error names it and the expected form.
    """
    out: dict[str, str] = {}
    for entry in topics:
        topic, equals, cluster = (part.strip() for part in entry.partition("="))
        if not is_topic(topic):
            raise _wrong("FAULTLINE_KAFKA_TOPICS", "topic or topic=cluster, separated by commas", entry)
        if equals and not cluster:
            raise _wrong("FAULTLINE_KAFKA_TOPICS", "a cluster's name after =", entry)
        if topic in out:
            raise _wrong("FAULTLINE_KAFKA_TOPICS", "each topic once", entry)
        out[topic] = cluster or topic
    return out


def _wrong(name: str, expected: str, got: str) -> ConfigurationError:
    return ConfigurationError(f"{name}: expected {expected}, got {got!r}", (FieldError(name, expected, got),))


@dataclass(frozen=True, slots=True)
class KafkaConfig:
    """Connection, topics and group.

    `topics` as in FAULTLINE_KAFKA_TOPICS. `fetch_bytes`: maximum size of one fetch (a single larger record is still
    fetched). `frame_bytes`: maximum size of a broker's response; a larger record can never be read, so it is far above
    the usual limit of brokers. The client takes that much memory as soon as four bytes announce it, for each
    connection, and what is no broker announces anything: an error of TLS stands for 352 MB.

    Raises:
        ConfigurationError: no broker, no topic, an invalid name, the dead-letter topic is also consumed, the protocol
            would not use the certificates or the login that are given, or it needs a login.
    """

    bootstrap_servers: tuple[str, ...]
    topics: tuple[str, ...]
    group_id: str = "faultline"
    dead_letter_topic: str = "faultline-dead-letters"
    session_timeout_ms: int = 45_000
    security_protocol: str = "PLAINTEXT"
    ssl_cafile: Path | None = None
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None
    ssl_password: str | None = field(default=None, repr=False)
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    fetch_bytes: int = 32 * 1024 * 1024
    frame_bytes: int = 128 * 1024 * 1024
    max_poll_interval_ms: int = 600_000
    request_timeout_ms: int = 30_000

    def __post_init__(self) -> None:
        if not self.bootstrap_servers:
            expected = "host:port of at least one broker, separated by commas"
            raise _wrong("FAULTLINE_KAFKA_BOOTSTRAP_SERVERS", expected, "")
        if not self.topics:
            raise _wrong("FAULTLINE_KAFKA_TOPICS", "at least one topic", "")
        if not self.group_id or len(self.group_id) > 200:  # noqa: PLR2004 - leaves room for host and number
            raise _wrong("FAULTLINE_KAFKA_GROUP_ID", "1 to 200 characters", self.group_id)
        if not is_topic(self.dead_letter_topic):
            raise _wrong("FAULTLINE_DEAD_LETTER_TOPIC", "a topic's name", self.dead_letter_topic)
        if self.dead_letter_topic in self.clusters:
            expected = "a topic that is not read (its letters would come back for ever)"
            raise _wrong("FAULTLINE_DEAD_LETTER_TOPIC", expected, self.dead_letter_topic)
        self._check_protocol()

    def _check_protocol(self) -> None:
        """A certificate or login that the protocol ignores was meant to protect the connection."""
        tls, sasl = "SSL" in self.security_protocol, self.security_protocol.startswith("SASL")
        for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_password"):
            if getattr(self, name) is not None and not tls:
                expected = f"with FAULTLINE_KAFKA_{name.upper()}: SSL or SASL_SSL, since others do not encrypt"
                raise _wrong("FAULTLINE_KAFKA_SECURITY_PROTOCOL", expected, self.security_protocol)
        for name in ("sasl_mechanism", "sasl_username", "sasl_password"):
            given = getattr(self, name) is not None
            if given and not sasl:
                expected = (
                    f"with FAULTLINE_KAFKA_{name.upper()}: SASL_SSL or SASL_PLAINTEXT, since others do not log in"
                )
                raise _wrong("FAULTLINE_KAFKA_SECURITY_PROTOCOL", expected, self.security_protocol)
            if sasl and not given:
                raise _wrong(f"FAULTLINE_KAFKA_{name.upper()}", f"a value with {self.security_protocol}", "")

    @property
    def sends_password(self) -> bool:
        """Whether the password goes over the network as it is."""
        return self.security_protocol == "SASL_PLAINTEXT" and self.sasl_mechanism == "PLAIN"

    @property
    def clusters(self) -> Mapping[str, str]:
        """{topic: cluster name for events without one}."""
        return topic_clusters(self.topics)

    def for_node_events(self, topic: str) -> "KafkaConfig":
        """The configuration of the consumer of node events: the same broker, its own topic and consumer group.

        Args:
            topic: FAULTLINE_NODE_EVENT_TOPIC, as in FAULTLINE_KAFKA_TOPICS.

        Raises:
            ConfigurationError: the topic is invalid, or this consumer reads it too.
        """
        try:
            config = replace(self, topics=(topic,), group_id=f"{self.group_id}-nodes")
        except ConfigurationError as error:
            raise ConfigurationError(f"FAULTLINE_NODE_EVENT_TOPIC: {error.detail}") from None
        if set(config.clusters) & set(self.clusters):
            raise ConfigurationError("FAULTLINE_NODE_EVENT_TOPIC: expected a topic outside FAULTLINE_KAFKA_TOPICS")
        return config

    def connection(self) -> dict[str, Any]:
        """The client arguments common to all connections."""
        out: dict[str, Any] = {
            "bootstrap_servers": list(self.bootstrap_servers),
            "security_protocol": self.security_protocol,
            "request_timeout_ms": self.request_timeout_ms,
        }
        if "SSL" in self.security_protocol:
            for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile"):
                path: Path | None = getattr(self, name)
                out[name] = None if path is None else str(path)
            out["ssl_password"] = self.ssl_password
        if self.security_protocol.startswith("SASL"):
            out["sasl_mechanism"] = self.sasl_mechanism
            out["sasl_plain_username"] = self.sasl_username
            out["sasl_plain_password"] = self.sasl_password
        return out


def instance_id(group_id: str, host: str, number: int) -> str:
    """Return the name of a static member, stable over restarts: `{group}-{host}-{number}` in valid characters."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", f"{group_id}-{host}")
    return f"{name[:240]}-{number}"
