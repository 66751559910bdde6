"""Creates Kafka clients without leaking threads on failed connections, and translates their errors.

Kafka's client reports only that it gave up: why no broker can be reached (name, port or certificate) is found out here.
`ensure_topic` creates a topic that is missing.
"""

import logging
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from kafka import KafkaAdminClient, errors
from kafka.admin import NewTopic
from kafka.net import transport
from kafka.net.compat import KafkaNetClient

from service.errors import ConfigurationError, FaultlineError, Unavailable
from service.messaging.kafka.config import KafkaConfig

SERVERS = "FAULTLINE_KAFKA_BOOTSTRAP_SERVERS"
CA_FILE = "FAULTLINE_KAFKA_SSL_CAFILE"
TIMEOUT_S = 2.0
MOST = 3  # servers that are tried
ASK_MS = 5_000
PORTION_BYTES = 1024 * 1024
_READ_BYTES = 64 * 1024
BROKERS_DEFAULT = -1


def connection_problem(servers: Sequence[str], *, tls: bool, ca_file: str | None = None) -> str | None:
    """Return the reason why the first servers cannot be reached, with the setting to look at.

    Args:
        servers: `host:port` of brokers.
        tls: the port is expected to use TLS.
        ca_file: the trusted certificates; None: the system's.

    Returns:
        None if one of them can be reached, so that the reason is another one.
    """
    found: list[str] = []
    for server in servers[:MOST]:
        problem = _problem(server, tls=tls, ca_file=ca_file)
        if problem is None:
            return None
        found.append(problem)
    return "; ".join(found) or None


def _problem(server: str, *, tls: bool, ca_file: str | None) -> str | None:
    host, _, port = server.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal():
        return f"{server} is not host:port ({SERVERS})"
    try:
        with socket.create_connection((host, int(port)), TIMEOUT_S) as connection:
            if tls:
                ssl.create_default_context(cafile=ca_file).wrap_socket(connection, server_hostname=host).close()
    except socket.gaierror as error:
        return f"the name {host} does not resolve: {error.strerror} ({SERVERS})"
    except ssl.SSLCertVerificationError as error:
        return f"the certificate of {server} is not accepted: {error.verify_message} ({CA_FILE})"
    except ssl.SSLError as error:
        return f"{server} does not speak TLS as expected: {error.reason or error} (FAULTLINE_KAFKA_SECURITY_PROTOCOL)"
    except (OSError, ValueError) as error:
        return f"{server}: {getattr(error, 'strerror', None) or error} ({SERVERS})"
    return None


log = logging.getLogger(__name__)

# Permanent errors: a retry does not help.
FOR_GOOD = (
    errors.AuthorizationError,
    errors.SaslAuthenticationFailedError,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
    errors.SecurityDisabledError,
    errors.KafkaConfigurationError,
    errors.UnsupportedCodecError,
    errors.UnsupportedVersionError,
    errors.InvalidSessionTimeoutError,
    errors.InvalidGroupIdError,
    errors.InconsistentGroupProtocolError,
    errors.InvalidTopicError,
    errors.GroupMaxSizeReachedError,
)


def received(one: Any) -> tuple[bytes, errors.KafkaError | None]:
    """What a transport of the client has received, in portions, and the error that ends it.

    The client's own function reads until nothing is left, which never happens where the other side sends faster: an
    endless answer filled gigabytes before a byte of it was looked at.
    """
    connection = one._sock  # noqa: SLF001 - there is no public way
    decrypted: Callable[[], int] = getattr(connection, "pending", int)  # of TLS: no more data announces these bytes
    parts, size = list[bytes](), 0
    while size < PORTION_BYTES or decrypted():
        try:
            part = connection.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            break
        except (OSError, ValueError, AttributeError) as error:  # the latter two if it was closed meanwhile
            return b"".join(parts), errors.KafkaConnectionError(error)
        if not part:
            return b"".join(parts), errors.KafkaConnectionError("socket disconnected")
        parts.append(part)
        size += len(part)
    return b"".join(parts), None


class Fenced(ConfigurationError):
    """Another member of the group uses this member's name."""

    title = "Member name in use"


class NetClient(KafkaNetClient):  # type: ignore[misc]  # kafka-python has no types
    """Closes every socket; kafka-python leaves one with an unsent request or an unfinished connect to the collector."""

    def close(self, node_id: int | None = None) -> None:
        """Close the connection to one node; without a node, all of them and the client."""
        sockets = [] if node_id is not None else self._sockets()
        super().close(node_id)
        for one in sockets:
            one.close()

    def _sockets(self) -> list[socket.socket]:
        transports = [one.transport for one in list(self._manager._conns.values())]  # noqa: SLF001 - no public access
        found = [one._sock for one in transports if one is not None and one._sock is not None]  # noqa: SLF001 - as above
        with suppress(RuntimeError, AttributeError):  # the thread of the client changes it, or it is closed
            found += [key.fileobj for key in self._net._selector.get_map().values()]  # noqa: SLF001 - as above
        return found


def connected(make: Callable[..., Any], *args: Any, **config: Any) -> Any:
    """Create a client of kafka-python; if its constructor fails, the thread that it has started is stopped.

    Raises:
        Unavailable, ConfigurationError: see `translated`.
    """
    for kind in (transport.KafkaTCPTransport, transport.KafkaSSLTransport):
        kind._sock_recv = received  # noqa: SLF001 - there is no public way
    started: list[Any] = []

    def client(**settings: Any) -> Any:
        started.append(NetClient(**settings))
        return started[-1]

    try:
        with translated("connect to the broker"):
            return make(*args, kafka_client=client, **config)
    except BaseException as error:
        for one in started:
            one.close()
        if not isinstance(error, Unavailable):
            raise
        protocol = config.get("security_protocol", "PLAINTEXT")
        problem = connection_problem(
            config.get("bootstrap_servers", ()), tls="SSL" in protocol, ca_file=config.get("ssl_cafile")
        )
        if problem is not None:
            raise Unavailable(f"{error.detail}: {problem}") from error
        if protocol != "PLAINTEXT":
            # A broker that rejects a password or certificate closes the connection; the client cannot distinguish this
            # from an outage.
            hint = f"check that the port uses {protocol}, and check user, password and certificates"
            raise Unavailable(f"{error.detail}; if the broker is up, {hint}") from error
        raise


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Translate errors of the client to errors of the service.

    Errors not known to be permanent count as temporary: a restarting broker responds with many kinds of errors.

    Raises:
        Fenced: another member uses this member's name.
        ConfigurationError: the broker refuses permanently.
        Unavailable: all other errors, including bugs of the client; the cause is attached.
    """
    try:
        yield
    except FaultlineError:
        raise
    except errors.FencedInstanceIdError as error:
        raise Fenced(
            "another worker with the same member name has replaced this one; give each worker on a host its own --name"
        ) from error
    except FOR_GOOD as error:
        raise ConfigurationError(f"Kafka: could not {doing}: {describe(error)}") from error
    except Exception as error:
        raise Unavailable(f"Kafka: could not {doing}: {describe(error)}") from error


def is_undecodable(error: BaseException | None) -> bool:
    """Return whether the client failed to decode a broker's data, as opposed to a failure of the broker."""
    return isinstance(error, errors.CorruptRecordError) or not isinstance(error, errors.KafkaError | OSError | None)


def describe(error: BaseException) -> str:
    """Describe an error in one line."""
    name = type(error).__name__
    text = " ".join(str(error).split())
    return (text if text.startswith(name) else f"{name}: {text}" if text else name)[:300]


def quietly(doing: str, action: Callable[[], object]) -> None:
    """Run an action during shutdown and ignore its errors."""
    try:
        action()
    except Exception as error:  # noqa: BLE001 - the client is discarded in any case
        log.info("could not %s: %s", doing, describe(error))


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
