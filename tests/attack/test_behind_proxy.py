"""A server on all addresses behind a real proxy: nobody gets past the proxy's login, its limits or its framing."""

import html
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from http.cookies import SimpleCookie
from urllib.parse import urlencode

import pytest

from service.web.limits.connections import HEADER_S
from tests.attack import proxies
from tests.attack.proxies import BASIC, Proxy
from tests.attack.server import PROXY_SECRET, Server, serving

NAMED = {"X-User": "root", "X-Groups": "admins", "Remote-User": "root", "X-Remote-User": "root", "X_User": "root"}
PAGE = "/api/v1/stats"
SOURCES = {"nginx": "127.0.1.1", "haproxy": "127.0.1.2"}  # of the guesses: not the address of a trusted proxy


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    given = {
        "PROXY_SECRET": PROXY_SECRET,
        "ROLES": "viewers=viewer,admins=admin",
        "GROUPS_CLAIM": "X-Groups",
        "USER_CLAIM": "X-User",
        "MAX_CONNECTIONS": "60",
    }
    with serving(tmp_path_factory.mktemp("behind"), **given) as started:
        yield started


@pytest.fixture(scope="module", params=["nginx", "haproxy"])
def proxy(behind: Server, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    start = {"nginx": proxies.nginx, "haproxy": proxies.haproxy}[request.param]
    with start(behind, tmp_path_factory.mktemp(request.param)) as running:
        yield running


def status(answer: str) -> int:
    found = re.match(r"HTTP/1\.[01] (\d{3})", answer)
    return int(found[1]) if found else 0


def test_only_the_proxy_names_the_person(proxy: Proxy, behind: Server) -> None:
    assert status(proxy.ask("/failures")) == 401
    assert status(proxy.ask("/failures", {"Authorization": BASIC})) == 200
    assert status(proxy.ask("/failures", {"Authorization": BASIC, **NAMED})) == 200
    assert status(proxy.ask("/settings", {"Authorization": BASIC, **NAMED})) == 403  # a viewer, not an administrator
    with closing(sqlite3.connect(behind.folder / "attacked.sqlite3")) as database:
        assert database.execute("SELECT name FROM accounts").fetchall() == [("ana",)]
    administrator = {"X-Faultline-Proxy-Secret": PROXY_SECRET, "X-User": "ana", "X-Groups": "admins"}
    assert status(behind.ask("/settings", administrator)) == 200


@pytest.mark.parametrize("secret", [None, "", "p" * 39, "P" * 40, f"{PROXY_SECRET}, {PROXY_SECRET}"])
def test_a_forged_identity_passes_no_route_that_the_proxy_leaves_open(proxy: Proxy, secret: str | None) -> None:
    claimed = NAMED | ({} if secret is None else {"X-Faultline-Proxy-Secret": secret})
    for path in (PAGE, "/api/v1/failures", "/api/v1/audit-log"):
        assert status(proxy.ask(path, claimed)) == 401
    assert status(proxy.ask("/api/v1/events", claimed, "POST", b"{}")) == 401


def test_a_token_passes_through_the_proxy(proxy: Proxy, behind: Server) -> None:
    assert status(proxy.ask(PAGE, {"Authorization": f"Bearer {behind.token}"})) == 200


def test_guesses_are_counted_for_the_client_whatever_it_says_of_its_address(proxy: Proxy) -> None:
    source = SOURCES[proxy.name]
    form = proxy.ask("/login", source=source)
    cookie = SimpleCookie(re.search(r"(?im)^set-cookie: (.*)$", form)[1].strip())  # type: ignore[index]
    sent = "; ".join(f"{name}={one.value}" for name, one in cookie.items())
    token = html.unescape(re.search(r'name="form_token" value="([^"]+)"', form)[1])  # type: ignore[index]
    answers = []
    for number in range(24):
        body = urlencode({"token": f"flt_{number}", "form_token": token}).encode()
        headers = {
            "Cookie": sent,
            "Content-Type": "application/x-www-form-urlencoded",
            "X-Forwarded-For": f"198.51.100.{number}, 203.0.113.{number}",
            "Forwarded": f"for=198.51.100.{number}",
            "X-Real-IP": f"198.51.100.{number}",
        }
        answers.append(status(proxy.ask("/login", headers, "POST", body, source)))
    assert answers[-1] == 429
    assert 401 in answers
    assert 500 not in answers


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("path", ["/api/v1/events", "/api/v1/policy:replay", "/login", "/failures/1/hold"])
def test_large_bodies_are_refused_and_fill_no_memory(proxy: Proxy, behind: Server, path: str, *, chunked: bool) -> None:
    idle = behind.memory("VmRSS")
    piece = b"x" * 65_536
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {64 * len(piece)}"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{length}\r\n\r\n".encode()
    body = (b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece) * 64
    with proxy.connected() as made:
        answer = b""
        with suppress(OSError):
            made.sendall(head)
            made.sendall(body + (b"0\r\n\r\n" if chunked else b""))
        with suppress(OSError):
            answer = made.recv(12)
    assert answer[9:] in {b"401", b"403", b"413", b"502", b""}  # 502: refused while the proxy was still sending
    assert behind.memory("VmRSS") <= idle + 32 * 1024


def test_slow_clients_do_not_keep_others_out(proxy: Proxy, behind: Server) -> None:
    half = (
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nname=",
    )
    began = time.monotonic()
    with ExitStack() as held:
        for number in range(150):
            made = held.enter_context(proxy.connected())
            made.sendall(half[number % len(half)])
        assert status(proxy.ask(PAGE, {"Authorization": f"Bearer {behind.token}"})) == 200
    assert time.monotonic() - began < HEADER_S, "answered before anybody gave up a slow client"


HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: x\r\nX-User: root\r\n\r\n"
SHAPES = {
    "length and chunks": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "chunks and length": b"Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n" + HIDDEN,
    "two lengths": b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(HIDDEN) + HIDDEN,
    "a list of lengths": b"Content-Length: 0, %d\r\n\r\n" % len(HIDDEN) + HIDDEN,
    "a signed length": b"Content-Length: +0\r\n\r\n" + HIDDEN,
    "a length in other digits": "Content-Length: ٠\r\n\r\n".encode() + HIDDEN,
    "a space before the colon": b"Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + HIDDEN,
    "a tab in the coding": b"Transfer-Encoding:\tchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + HIDDEN,
    "an unknown coding": b"Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + HIDDEN,
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + HIDDEN,
    "chunked twice": b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "a folded header": b"X: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + HIDDEN,
    "a bare line feed": b"X: y\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + HIDDEN,
    "a bare carriage return": b"X: y\rTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + HIDDEN,
    "a null byte": b"X: y\x00\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "a large chunk size": b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 17 + b"\r\nx" + HIDDEN,
    "a negative chunk size": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + HIDDEN,
    "a chunk size in C": b"Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n" + HIDDEN,
    "a chunk extension with a line feed": b"Transfer-Encoding: chunked\r\n\r\n0;a\n\r\n\r\n" + HIDDEN,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_no_ambiguous_message_hides_a_request(proxy: Proxy, shape: str) -> None:
    """The hidden request would be answered to the next client on the proxy's reused connection, with 401 or 404."""
    attack = b"POST /health/live HTTP/1.1\r\nHost: x\r\n" + SHAPES[shape]
    with proxy.connected() as made:
        made.settimeout(1.0)
        made.sendall(attack)
        with suppress(OSError):
            made.recv(65_536)
    for _ in range(3):
        answer = proxy.ask("/health/live")
        assert status(answer) == 200
        assert answer.count("HTTP/1.1 ") == 1


# RFC 9112 and 9110 give these one meaning: a folded line continues its header, and a tab may precede a value.
UNAMBIGUOUS = {"a folded header", "a tab in the coding"}


@pytest.mark.parametrize("shape", sorted(SHAPES.keys() - UNAMBIGUOUS))
def test_the_server_itself_answers_no_request_behind_an_ambiguous_message(behind: Server, shape: str) -> None:
    with behind.connected() as made:
        made.sendall(b"POST /health/live HTTP/1.1\r\nHost: x\r\n" + SHAPES[shape])
        made.settimeout(0.5)
        received = b""
        with suppress(OSError):
            while piece := made.recv(65_536):
                received += piece
    assert received.count(b"HTTP/1.1 ") <= 1, received


@pytest.mark.parametrize(
    "path",
    [
        *("/api/../failures", "/api/%2e%2e/failures", "/api/..%2ffailures", "/api/v1/..;/../failures", "//failures"),
        *("/health/../audit", "/health/%2e%2e/audit", "/health/..%2faudit", "/login/../audit", "/login/..;/audit"),
        *("/api/v1/../../../../etc/passwd", "/static/../../../etc/passwd", "/static/..%2f..%2f..%2fetc%2fpasswd"),
        *(
            "/API/v1/stats",
            "/api/v1//stats",
            "/api/v1/stats/",
            "/api/v1/%73tats",
            "/api/v1/stats%00",
            "/api/v1/stats;x",
        ),
        *("http://evil.example/audit", "/api/v1/stats?x=%0d%0aSet-Cookie:a", "/%0d%0aSet-Cookie:%20a=b", "*", "audit"),
    ],
)
def test_no_spelling_of_a_path_opens_a_page_or_a_file(proxy: Proxy, path: str) -> None:
    answer = proxy.ask(path, NAMED)
    assert status(answer) in {301, 302, 303, 307, 308, 400, 401, 403, 404, 405}
    assert "root:x:" not in answer
    assert not re.search(r"(?im)^set-cookie: a", answer)


def test_no_header_of_a_client_chooses_where_a_browser_is_sent(proxy: Proxy) -> None:
    evil = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "javascript", "X-Original-URL": "/audit"}
    evil |= {"X-Rewrite-URL": "/audit", "X-HTTP-Method-Override": "DELETE", "Referer": "https://evil.example/"}
    for path in ("/login?next=//evil.example", "/login?next=https://evil.example", "/failures/"):
        answer = proxy.ask(path, {"Authorization": BASIC, "Host": "evil.example", **evil})
        assert not re.search(r"(?im)^location:\s*(https?:)?//evil", answer)
        assert status(answer) < 500
