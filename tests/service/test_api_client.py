"""The client of the service's own API: decoded answers, bounded size, and problems in one shape."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from service.api_client import ApiClient, ApiUnreachable
from tests.service.http_server import listening


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        status, body = (403, b'{"detail": "the scope act is missing"}') if "refused" in self.path else (200, b"{}")
        if "large" in self.path:
            body = b'"' + b"x" * 5_000 + b'"'
        if "echo" in self.path:
            body = f'["{self.headers["authorization"]}", "{self.path}"]'.encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name for it
        """Print nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with listening(server) as address:
        yield f"{address}/faultline"


def test_the_token_is_read_for_each_request_and_the_path_is_kept(url: str) -> None:
    tokens = iter(["first", "second"])
    client = ApiClient(url, token=lambda: next(tokens), user_agent="test")
    assert client.request("POST", "/echo", b"{}").body == ["Bearer first", "/faultline/api/v1/echo"]
    assert client.request("POST", "/echo", b"{}").body[0] == "Bearer second"
    client.close()


def test_a_refusal_has_its_status_and_detail(url: str) -> None:
    client = ApiClient(url, token=None, user_agent="test")
    response = client.request("POST", "/refused", b"{}")
    assert (response.ok, response.status, response.detail) == (False, 403, "the scope act is missing")
    client.close()


def test_an_answer_above_the_limit_or_none_at_all_is_unreachable(url: str) -> None:
    client = ApiClient(url, token=None, user_agent="test", max_answer_bytes=1_000)
    with pytest.raises(ApiUnreachable, match="too large"):
        client.request("POST", "/large", b"{}")
    client.close()
    nobody = ApiClient("http://127.0.0.1:1", token=None, user_agent="test")
    with pytest.raises(ApiUnreachable, match="127"):
        nobody.request("POST", "/x", b"{}")
    nobody.close()
