"""Runs a small HTTP server of a test in a thread."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer

POLL_S = 0.02


@contextmanager
def listening(server: HTTPServer) -> Iterator[str]:
    """Serve until the end of the block; yields the address, such as `http://127.0.0.1:8080`."""
    thread = threading.Thread(target=server.serve_forever, args=(POLL_S,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
