"""Callers without a login: their bodies are not read, and they can't keep others from the service.

Nor can web sites that a person opens who is logged in: no form of theirs is taken, and no cache has an answer for them.
"""

import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from urllib.parse import quote, urlsplit

import pytest
from fastapi.testclient import TestClient

from service.web.limits.connections import HEADER_S, STALLED_S
from service.web.sessions import COOKIE, LIFETIME
from tests.attack.server import PROXY_SECRET, Server, request, response
from tests.service.web.access.test_auth import form_token
from tests.service.web.test_app import WANTED, filled
from tests.service.web.world import event, lines, make_world

HOSTILE = 60
LONGEST_WAIT_S = 2.0
LOGGED_AFTER_S = 1.0
PIECE = b"x" * 65_536
UNREAD_KIB = 256  # of an answer in memory that a client does not read
ROUTES = ("/api/v1/events", "/api/v1/policy:replay", "/api/v1/labels", "/login", "/failures/1/hold", "/api/v1/nothing")


def flood(server: Server, path: str, *, chunked: bool, pieces: int = 256) -> str:
    """Send a body of up to 16 MiB without a login, as fast as the server takes it."""
    length = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(pieces * len(PIECE))}
    with server.connected() as made:
        made.sendall(request(path, {**length, "Content-Type": "application/json"}, "POST"))
        made.settimeout(10)
        try:
            for _ in range(pieces):
                made.sendall((b"%x\r\n%s\r\n" % (len(PIECE), PIECE)) if chunked else PIECE)
        except OSError:
            pass  # refused and closed
        return response(made)


def test_bodies_of_strangers_fill_no_memory(server: Server) -> None:
    bearer = {"Authorization": f"Bearer {server.token}"}
    for path in ("/api/v1/stats", "/", "/failures", "/login"):
        server.ask(path, bearer)
    idle = server.memory()
    with ThreadPoolExecutor(HOSTILE) as pool:
        made = [
            pool.submit(flood, server, ROUTES[number % len(ROUTES)], chunked=number % 2 == 0)
            for number in range(HOSTILE)
        ]
        answers = [one.result() for one in made]
    assert not any(" 200 " in answer[:20] or " 500 " in answer[:20] for answer in answers)
    assert server.memory() <= 1.5 * idle
    assert " 200 " in server.ask("/api/v1/stats", bearer)[:20]


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_of_a_stranger_is_refused_before_it_is_sent(server: Server, path: str, *, chunked: bool) -> None:
    length = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": "999999999"}
    with server.connected() as made:
        made.sendall(request(path, length, "POST"))
        if path == "/login" and chunked:
            made.sendall(b"20000\r\n" + b"x" * 0x20000 + b"\r\n")
        status = made.recv(12)
    assert status in {b"HTTP/1.1 401", b"HTTP/1.1 413"}


def test_an_oversized_body_of_a_known_caller_is_refused(server: Server) -> None:
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    with server.connected() as made:
        made.sendall(request("/api/v1/policy:replay", headers | {"Transfer-Encoding": "chunked"}, "POST"))
        made.sendall(b"%x\r\n" % (2 << 20) + b" " * (2 << 20) + b"\r\n")
        assert made.recv(12) == b"HTTP/1.1 413"


def test_half_open_requests_do_not_lock_others_out(server: Server) -> None:
    bearer = {"Authorization": f"Bearer {server.token}"}
    began = time.monotonic()
    with ExitStack() as held:
        for number in range(3 * 40):
            made = held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=120))
            made.sendall(
                [b"", b"GET / HTTP/1.1\r\nHost: x\r\n", request("/login", {"Content-Length": "9"}, "POST")][number % 3]
            )
        assert " 200 " in server.ask("/api/v1/stats", bearer)[:20]
    assert time.monotonic() - began < HEADER_S, "answered before the server gave up any of the half-open requests"


def test_clients_that_read_no_answer_neither_lock_others_out_nor_fill_the_memory(server: Server) -> None:
    """Requests in advance on one connection, for the largest document that needs no login."""
    bearer = {"Authorization": f"Bearer {server.token}"}
    server.ask("/api/v1/openapi.json")
    idle = server.memory("VmRSS")
    with ExitStack() as held:
        for _ in range(2 * 40):
            made = held.enter_context(socket.socket())
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            made.connect(("127.0.0.1", server.port))
            made.sendall(b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: faultline.example\r\n\r\n" * 20)
        began = time.monotonic()
        while " 200 " not in server.ask("/api/v1/stats", bearer)[:20]:  # it still sends to all of them
            assert time.monotonic() - began < STALLED_S / 2, "answered before the server gave up any of them"
            time.sleep(0.1)
        assert server.memory("VmRSS") <= idle + 40 * UNREAD_KIB


@pytest.mark.parametrize("known", [False, True])
def test_a_body_of_tiny_chunks_delays_no_other_request(server: Server, *, known: bool) -> None:
    """Each chunk costs the server the same, however short it is."""
    headers = {"Transfer-Encoding": "chunked"} | ({"Authorization": f"Bearer {server.token}"} if known else {})
    ended = threading.Event()

    def send() -> None:
        while not ended.is_set():
            with suppress(OSError), server.connected() as made:
                made.settimeout(5)
                made.sendall(request("/api/v1/events", headers, "POST"))
                while not ended.is_set():
                    made.sendall(b"1\r\nx\r\n" * 40_000)

    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send)
        slowest = 0.0
        try:
            for _ in range(20):
                began = time.monotonic()
                assert " 200 " in server.ask("/health/live")[:20]
                slowest = max(slowest, time.monotonic() - began)
        finally:
            ended.set()
        sending.result()
    assert slowest < LONGEST_WAIT_S


@pytest.mark.parametrize("path", ["/api/v1/events", "/api/v1/failures/1/feedback"])
def test_a_client_that_breaks_off_fills_no_log(server: Server, path: str) -> None:
    errors = server.folder / "errors"
    before = errors.stat().st_size
    headers = {"Authorization": f"Bearer {server.token}", "Content-Length": "99", "Content-Type": "application/json"}
    for _ in range(5):
        with server.connected() as made:
            made.sendall(request(path, headers, "POST") + b"{")
    assert " 200 " in server.ask("/health/live")
    time.sleep(LOGGED_AFTER_S)
    assert "Traceback" not in errors.read_text(encoding="utf-8")[before:]


@pytest.mark.parametrize("secret", ["", " ", PROXY_SECRET[:-1], PROXY_SECRET + "p", "ü" * 20])
def test_no_client_is_the_proxy_without_its_secret(server: Server, secret: str) -> None:
    named = {"X-User": "root", "X-Groups": "sre"}
    assert " 401 " in server.ask("/api/v1/stats", named | {"X-Faultline-Proxy-Secret": secret})[:20]
    assert " 200 " in server.ask("/api/v1/stats", named | {"X-Faultline-Proxy-Secret": PROXY_SECRET})[:20]


@pytest.mark.parametrize("name", ["X-User", "X-Groups"])
def test_a_repeated_identity_header_is_refused(server: Server, name: str) -> None:
    named = {"X-User": "ana", "X-Groups": "sre", "X-Faultline-Proxy-Secret": PROXY_SECRET}
    assert " 200 " in server.ask("/api/v1/stats", named)[:20]
    refused = server.ask("/api/v1/stats", named | {name.lower(): "mallory"})
    assert " 403 " in refused[:20]
    assert "as the proxy removes those of clients" in refused


def test_a_server_that_logs_many_refusals_goes_on_answering(server: Server) -> None:
    path = f"/api/v1/failures/{'x' * 500}"
    for _ in range(250):
        assert " 401 " in server.ask(path, {"Authorization": "Bearer wrong"})
    assert (server.folder / "errors").stat().st_size > 65_536  # more than a pipe holds that nobody reads
    assert " 200 " in server.ask("/health/live")


FORMS = sorted(path for method, path in WANTED if method == "POST" and not path.startswith("/api/"))
FOREIGN: tuple[dict[str, str], ...] = (
    {"Origin": "https://evil.example"},
    {"Origin": "https://127.0.0.1:8080@evil.example"},
    {"Origin": "https://127.0.0.1:8080.evil.example"},
    {"Origin": "https://evil.example#127.0.0.1:8080"},
    {"Origin": "https://[", "Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:8080"},
)
INJECTED = "x\r\nSet-Cookie: faultline_session=evil\r\nX-Evil: 1"


@pytest.fixture(scope="module")
def logged_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The browser of an administrator."""
    world = make_world(tmp_path_factory.mktemp("forms"), host="0.0.0.0")
    with world.client(world.token("ingest")) as client:
        client.post("/api/v1/events", content=lines(event()))
    with world.store.unit_of_work() as work:
        account = work.accounts.create("ana", "admin", password="x")
        session = work.sessions.log_in(account_id=account.id, lasts=LIFETIME)
    with world.client() as browser:
        browser.cookies.set(COOKIE, session)
        yield browser
    world.store.close()


@pytest.mark.parametrize("path", FORMS)
def test_no_form_of_another_site_is_taken(logged_in: TestClient, path: str) -> None:
    place, token = filled(path), form_token(logged_in, "/failures")
    for headers in FOREIGN:
        assert logged_in.post(place, data={"form_token": token}, headers=headers).status_code == 403, headers
    for wrong in ({}, {"form_token": ""}, {"form_token": token[:-1]}, {"form_token": f"{token}x"}):
        assert logged_in.post(place, data=wrong, headers={"Origin": "null"}).status_code == 403, wrong
    assert logged_in.get("/failures").status_code == 200, "nor does it log anybody out"


def test_no_answer_with_data_of_a_person_is_cached_or_has_a_validator(
    logged_in: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A validator would tell one account what another one was shown."""
    monkeypatch.setattr("service.web.pages.live.MAX_DURATION_S", 0.0)
    for method, path in WANTED:
        if method == "GET" and path != "/favicon.ico":
            answer = logged_in.get(filled(path))
            assert answer.headers["Cache-Control"] == "no-store", path
            assert not {"etag", "last-modified", "age", "expires"} & set(answer.headers), path


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/login", {"next": f"/{INJECTED}"}),
        ("/views", {"name": "a", "query": INJECTED}),
        ("/feedback/undo", {"judged": "1", "back": f"?{INJECTED}"}),
        ("/groups/act", {"action": "assign", "group": "1", "to": INJECTED, "back": f"?{INJECTED}"}),
        (f"/nodes/orion/{quote(INJECTED)}/repaired", {"note": INJECTED}),
        ("/automation/stop", {"reason": INJECTED}),
        ("/settings/tokens/revoke", {"name": INJECTED}),
    ],
)
def test_no_text_of_a_form_becomes_a_header(logged_in: TestClient, path: str, fields: dict[str, str]) -> None:
    answer = logged_in.post(path, data={**fields, "form_token": form_token(logged_in, "/failures")})
    assert "x-evil" not in answer.headers
    assert "evil" not in answer.headers.get("set-cookie", "")
    assert not set("\r\n") & set("".join(answer.headers.values()))


@pytest.mark.parametrize(
    "path", ["/search", "/mine", "/login", "/login/oidc", "/settings/tokens", "/reports/2026-W46.md", "/failures"]
)
def test_no_address_of_a_query_leads_to_another_site(logged_in: TestClient, path: str) -> None:
    for wanted in ("//evil.example", "/\\evil.example", "https:evil.example", "/%09/evil.example", f"/{INJECTED}"):
        answer = logged_in.get(path, params=dict.fromkeys(("q", "next", "since", "cluster", "user"), wanted))
        target = answer.headers.get("location", "/")
        assert urlsplit(target).netloc == ""
        assert target.startswith("/")
        assert not target.startswith(("//", "/\\"))
        assert "x-evil" not in answer.headers
        assert not re.search(r'(?:href|action)="(?!/|#|\?)', answer.text), "every link leads to a page of this server"
