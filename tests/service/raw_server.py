"""A server on loopback that answers each request with bytes, also with wrong ones or without an end."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

Answer = Callable[[socket.socket], None]


class Server:
    """Answers each request, which it reads up to its body, with `answer`."""

    def __init__(self, answer: Answer) -> None:
        self.requests = 0
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self._socket.accept()[0],), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            data = b""
            while b"\r\n\r\n" not in data:
                if not (part := client.recv(65536)):
                    return
                data += part
            self.requests += 1
            self._answer(client)


def sends(content: bytes, forever: bytes = b"") -> Answer:
    def answer(client: socket.socket) -> None:
        client.sendall(content)
        while forever:
            client.sendall(forever)

    return answer


def silent(client: socket.socket) -> None:
    client.settimeout(60)
    client.recv(1 << 20)
    client.recv(1)
