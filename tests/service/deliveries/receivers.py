"""Real receivers on loopback: good ones that remember, and bad ones."""

import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.service.http_server import listening


@dataclass(frozen=True)
class Received:
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Receiver:
    """Answers as `status`, `headers` and `answer` say now; `before_answer` may hold it up."""

    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    answer: bytes = b""
    before_answer: Callable[[], object] | None = None
    got: list[Received] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [one.headers["webhook-id"] for one in self.got]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what some tests are about."""


@contextmanager
def receiver(certificate: tuple[str, str] | None = None) -> Iterator[Receiver]:
    """One on a free port; with (certificate, key) files by TLS."""
    here = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            here.got.append(Received(self.path, headers, body))
            if here.before_answer is not None:
                here.before_answer()
            with suppress(OSError):
                self.send_response(here.status)
                for name, value in here.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(here.answer)))
                self.end_headers()
                self.wfile.write(here.answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            del format, args

    server = _Server(("127.0.0.1", 0), Handler)
    scheme = "http"
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*certificate)
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        scheme = "https"
    here.url = f"{scheme}://127.0.0.1:{server.server_address[1]}/hook"
    with listening(server):
        yield here


class Inbox:
    """The mails that a mail server took, and their receivers."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.to: list[list[str]] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 -- the library's name
        del server, session
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        self.to.append(envelope.rcpt_tos)
        return "250 taken"


@contextmanager
def mail_server() -> Iterator[tuple[Inbox, str]]:
    """A mail server on a free port, and the apprise address that sends to `{user}` by it."""
    from aiosmtpd.controller import Controller  # noqa: PLC0415 -- callers skip where it is missing

    box = Inbox()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Controller(box, hostname="127.0.0.1", port=port)
    server.start()
    people = "from=faultline@org.example&to={user}@org.example"
    try:
        yield box, f"mailto://org.example:{port}?smtp=127.0.0.1&mode=insecure&{people}"
    finally:
        server.stop()
