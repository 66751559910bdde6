"""A name of a log server that changes its address leads to no internal server."""

import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from typing import Any

import pytest

from service.logs.allowed_roots import LogRefused, parse_roots
from service.logs.fetch import LogFetcher
from service.logs.remote import Remote, is_allowed
from service.settings import PRIVATE_NETWORKS
from tests.labs.ports import free_port
from tests.service.http_server import listening
from tests.service.logs.test_fetch import job
from tests.service.raw_server import Answer, Server, sends, silent

LISTED, INTERNAL = "127.0.0.2", "127.0.0.1"  # both on this machine; only the first is listed
pytestmark = pytest.mark.allow_hosts([LISTED, INTERNAL])


class Web:
    """The same port at both addresses, and a resolver that gives the next of `answers` at each question."""

    def __init__(self, held: ExitStack) -> None:
        self.asked: dict[str, list[str]] = {LISTED: [], INTERNAL: []}
        self.answers: list[Sequence[str]] = []
        self.questions = 0
        self.redirect = ""
        self.port = free_port()
        for address in (LISTED, INTERNAL):
            server = ThreadingHTTPServer((address, self.port), self._handler(address))
            held.enter_context(listening(server))

    def _handler(web, address: str) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's
        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                web.asked[address].append(self.path)
                body = f"from {address}\n".encode()
                self.send_response(302 if web.redirect and self.path.endswith("away") else 200)
                self.send_header("Location", web.redirect)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        return Handler

    def resolve(self, host: Any, port: Any, *args: Any, **named: Any) -> Any:
        del args, named
        if host not in {"logs.example", "other.example"}:
            raise socket.gaierror(socket.EAI_NONAME, "unknown name")
        found = self.answers[self.questions % len(self.answers)] if host == "logs.example" else [INTERNAL]
        self.questions += 1
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    with ExitStack() as held:
        made = Web(held)
        monkeypatch.setattr(socket, "getaddrinfo", made.resolve)
        yield made


@pytest.fixture
def remote(web: Web) -> Iterator[Remote]:
    roots = [f"http://{host}:{web.port}/logs" for host in ("logs.example", "other.example")]
    opened = Remote(parse_roots(roots), [ip_network(LISTED)])
    yield opened
    opened.close()


def read(remote: Remote, url: str) -> bytes:
    with remote.open_log(url) as (file, _):
        return bytes(file.read())


@pytest.mark.parametrize("answers", [[[LISTED], [INTERNAL]], [[INTERNAL], [LISTED]], [[LISTED, INTERNAL]]])
def test_a_name_that_changes_its_address_reaches_no_internal_server(
    web: Web, remote: Remote, answers: list[Sequence[str]]
) -> None:
    web.answers = answers
    for number in range(12):
        try:
            assert read(remote, f"http://logs.example:{web.port}/logs/{number}") == f"from {LISTED}\n".encode()
        except LogRefused as refused:
            assert "internal address" in str(refused)  # noqa: PT017 - either is right, by what the resolver says now
    assert web.questions > 0
    assert web.asked[INTERNAL] == []
    assert len(web.asked[LISTED]) > 0


def test_a_redirect_to_another_name_is_checked_again(web: Web, remote: Remote) -> None:
    web.answers = [[LISTED]]
    for target in (f"http://other.example:{web.port}/logs/x", f"http://{INTERNAL}:{web.port}/logs/x"):
        web.redirect = target
        with pytest.raises(LogRefused, match=r"internal address|redirected away"):
            read(remote, f"http://logs.example:{web.port}/logs/away")
    assert web.asked[INTERNAL] == []
    assert web.asked[LISTED] != []


def test_the_log_of_a_job_says_why_it_is_missing(web: Web) -> None:
    web.answers = [["169.254.169.254"]]
    fetcher = LogFetcher([f"http://logs.example:{web.port}/logs"])
    [found] = fetcher.fetch_all([job({"rank": 0, "stream": "stderr", "uri": f"http://logs.example:{web.port}/logs/a"})])
    fetcher.close()
    assert "FAULTLINE_LOG_NETWORKS" in str(found.streams[0].missing)


PLAIN = b"HTTP/1.1 200 OK\r\n"
PART = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-10/1000000000000\r\n"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        # Either the part is too long, or what followed the answer to HEAD is no answer to the next request.
        (
            sends(PART + b"Content-Length: 1000000000000\r\n\r\n", b"x" * 65536),
            "more than the part that was asked for|could not be read",
        ),
        (sends(PLAIN + b"Content-Length: 1000\r\n\r\nabc"), "could not be read"),
        (sends(PLAIN, b"X-A: " + b"x" * 6000 + b"\r\n"), "could not be read"),
        (sends(b"HTTP/1.1 302 No\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"), "redirected away"),
        (sends(PLAIN + b"\r\n", b"RuntimeError: x\n" * 4096), None),
        (silent, "not arrived within 2 s"),
    ],
    ids=["more than asked for", "half", "endless head", "redirect to a file", "endless log", "silence"],
)
def test_a_log_server_that_hangs_lies_or_never_stops_costs_only_its_own_log(answer: Answer, words: str | None) -> None:
    server = Server(answer)
    fetcher = LogFetcher([f"http://{server.address}/"])
    log = {"rank": 0, "stream": "stderr", "uri": f"http://{server.address}/a"}
    [found] = fetcher.fetch_all([job(log)], 2 if answer is silent else 60)
    server.close()
    fetcher.close()
    if words is None:
        assert found.streams[0].text.endswith("RuntimeError: x\n")
    else:
        assert re.search(words, str(found.streams[0].missing))


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "127.0.0.1",
        "169.254.169.254",  # metadata of AWS, Azure, Google Cloud and others
        "fd00:ec2::254",
        "100.100.100.200",  # of Alibaba Cloud
        "168.63.129.16",  # of Azure
        "192.0.0.192",  # of Oracle Cloud
        "fe80::1%eth0",
        "::1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "0.0.0.0",
    ],
)
def test_internal_addresses_need_a_network_that_is_listed(address: str) -> None:
    assert not is_allowed("logs.example", address, [])
    assert not is_allowed("logs.example", address, [ip_network("10.20.0.0/16")])
    assert not is_allowed("localhost.example", address, [])
    network = ip_network(address.partition("%")[0])
    assert is_allowed("logs.example", address, [network]) or network.version == 6


def test_by_default_names_lead_to_private_networks_but_not_to_this_machine_its_links_or_metadata() -> None:
    networks = [ip_network(one) for one in PRIVATE_NETWORKS]
    for address in ("10.1.2.3", "172.20.0.1", "192.168.7.9", "fd12:3456::1"):
        assert is_allowed("logs.example", address, networks)
    for address in ("127.0.0.1", "169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "fe80::1"):
        assert not is_allowed("logs.example", address, networks)
    assert is_allowed("logs.example", "fd00:ec2::254", [ip_network("fd00:ec2::254")])


def test_public_addresses_and_this_machine_by_its_name_are_allowed() -> None:
    assert is_allowed("logs.example", "93.184.216.34", [])
    assert is_allowed("logs.example", "2606:2800:220:1::1", [])
    assert is_allowed("localhost", "127.0.0.1", [])
    assert is_allowed("localhost", "::1", [])
    assert not is_allowed("localhost", "10.0.0.1", [])
