"""Finds out why no broker can be reached: name, port or certificate. Kafka's client reports only that it gave up."""

import socket
import ssl
from collections.abc import Sequence

SERVERS = "FAULTLINE_KAFKA_BOOTSTRAP_SERVERS"
CA_FILE = "FAULTLINE_KAFKA_SSL_CAFILE"
TIMEOUT_S = 2.0
MOST = 3  # servers that are tried


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
