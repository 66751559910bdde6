"""Small HTTP servers beside the service's own: for webhooks of hooks, and for metrics of workers and watchers."""

import http.client
import itertools
import logging
import socket
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO, Any

from prometheus_client import CollectorRegistry, MetricsHandler

REQUEST_S = 10.0
MOST_CONNECTIONS = 16
HEADER_BYTES = 16 * 1024  # of a request, without its first line
log = logging.getLogger(__name__)


class _HeaderLines:
    """The lines of a header up to `HEADER_BYTES`: the standard library takes a hundred lines of 64 KiB each."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._left = HEADER_BYTES

    def readline(self, size: int) -> bytes:
        """Read one line.

        Raises:
            LineTooLong: the header is too large; answered with 431.
        """
        line = self._source.readline(min(size, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise http.client.LineTooLong("header")
        return line


class _BoundedHeader(BaseHTTPRequestHandler):
    """Stands before another handler as a base."""

    def parse_request(self) -> bool:
        """Read the header of a request."""
        source: Any = self.rfile
        self.rfile = _HeaderLines(source)  # type: ignore[assignment]
        try:
            return super().parse_request()
        finally:
            self.rfile = source


class BoundedServer(ThreadingHTTPServer):
    """An HTTP server with a thread for each connection, of which slow clients cannot take all.

    Args:
        address: the host, by name or address, and the port; 0: any free port.
        handler: answers one connection. Its `timeout` bounds each wait for the client.

    Raises:
        OSError: the address can't be used.
        OverflowError: the port is none.
    """

    daemon_threads = True
    request_queue_size = 128
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: dict[int, socket.socket] = {}  # by number, oldest first
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, type("Bounded", (_BoundedHeader, handler), {}))

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for each connection; at the limit, the oldest connection is closed, which is a slow one."""
        with self._lock:
            if len(self._open) >= MOST_CONNECTIONS:
                oldest = self._open.pop(next(iter(self._open)))
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[next(self._numbers)] = request
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Forget the connection at the end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open = {number: one for number, one in self._open.items() if one is not request}

    def handle_error(self, request: object, client_address: object) -> None:
        """Log a closed connection at debug level only, and anything else as the fault that it is."""
        del request
        error = sys.exception()
        if isinstance(error, OSError):
            log.debug("a connection from %s ended early", client_address)
        else:
            log.error("a request from %s could not be handled", client_address, exc_info=error)


def serve_metrics(host: str, port: int, registry: CollectorRegistry) -> BoundedServer:
    """Answer with the metrics of a registry until the server is shut down and closed.

    Raises:
        OSError: the address can't be used.
        OverflowError: the port is none.
    """
    handler = type("Handler", (MetricsHandler.factory(registry),), {"timeout": REQUEST_S})
    server = BoundedServer((host, port), handler)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
