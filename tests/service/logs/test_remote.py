from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from service.logs import remote as remote_module
from service.logs.allowed_roots import LogRefused, parse_roots
from service.logs.local import LogNotFound, LogUnavailable
from service.logs.remote import Remote
from tests.service.http_server import listening

LOG = b"".join(b"line %d\n" % number for number in range(1, 20_001))


class Handler(BaseHTTPRequestHandler):
    """Serves one log; `/ranges/` understands ranges, `/away/` and `/near/` redirect."""

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, *, with_body: bool) -> None:
        assert isinstance(self.server, ThreadingHTTPServer)
        port = self.server.server_port
        targets = {
            "/logs/away": f"http://127.0.0.1:{port}/private/a.log",
            "/logs/host": f"http://localhost:{port}/logs/a.log",
            "/logs/near": "/logs/a.log",
        }
        if self.path in targets:
            self.send_response(302)
            self.send_header("Location", targets[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path in {"/logs/denied", "/logs/broken"}:
            self.send_error(403 if self.path.endswith("denied") else 500)
            return
        if not self.path.endswith("a.log") and "a.log?" not in self.path:
            self.send_error(404)
            return
        body, asked = LOG, self.headers.get("Range")
        if self.path.startswith("/logs/ranges/") and asked:
            begin, _, end = asked.removeprefix("bytes=").partition("-")
            body = LOG[int(begin) : int(end) + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{end}/{len(LOG)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with listening(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as address:
        yield address


@pytest.fixture
def remote(server: str) -> Iterator[Remote]:
    opened = Remote(parse_roots([f"{server}/logs", "memory://logs/in", "nosuch://x/y"]))
    yield opened
    opened.close()


def read(remote: Remote, url: str) -> bytes:
    with remote.open_log(url) as (file, size):
        data = b""
        if size is not None:
            file.seek(max(size - 1000, 0))
        while piece := file.read(65_536):
            data += piece
    return data


def test_a_log_is_read_by_http(remote: Remote, server: str) -> None:
    assert read(remote, f"{server}/logs/a.log") == LOG
    assert read(remote, f"{server}/logs/a.log?signature=x") == LOG


def test_of_a_large_log_only_the_end_is_fetched(remote: Remote, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_module, "SCAN_BYTES", 10_000)
    assert read(remote, f"{server}/logs/ranges/a.log") == LOG[-1000:]
    with pytest.raises(LogRefused, match="could not be read"):
        read(remote, f"{server}/logs/a.log")  # the server knows no ranges


def test_a_redirect_is_followed_only_within_the_allow_list(remote: Remote, server: str) -> None:
    assert read(remote, f"{server}/logs/near") == LOG
    for away in ("away", "host"):
        with pytest.raises(LogRefused, match="redirected away: outside"):
            read(remote, f"{server}/logs/{away}")


def test_what_is_not_there_may_come_and_what_is_denied_says_so(remote: Remote, server: str) -> None:
    with pytest.raises(LogNotFound):
        read(remote, f"{server}/logs/none")
    with pytest.raises(LogRefused, match="permission denied"):
        read(remote, f"{server}/logs/denied")
    with pytest.raises(LogUnavailable, match="ClientResponseError 500"):
        read(remote, f"{server}/logs/broken")


def test_an_address_outside_is_not_even_asked(remote: Remote, server: str) -> None:
    for url in (f"{server}/private/a.log", "http://192.0.2.1/logs/a.log", "ftp://x/y"):
        with pytest.raises(LogRefused):
            read(remote, url)


def test_a_closed_port_is_given_as_the_reason() -> None:
    silent = Remote(parse_roots(["http://127.0.0.1:1/"]))
    with pytest.raises(LogUnavailable, match="could not be read"):
        read(silent, "http://127.0.0.1:1/a.log?sig=secret")
    silent.close()


def test_a_scheme_without_a_driver_is_a_reason(remote: Remote) -> None:
    with pytest.raises(LogRefused, match="no driver for nosuch"):
        read(remote, "nosuch://x/y/z")
    with pytest.raises(LogNotFound):
        read(remote, "memory://logs/in/a.log")
