"""Against a real HTTP server, which answers what it is told to."""

import json
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from service.clock import SystemClock
from service.hooks.lease_client import LeaseClient, LeaseLost, ServiceRefused, ServiceUnavailable
from service.hooks.request import Settled
from tests.service.hooks.test_lease_parser import ITEM
from tests.service.http_server import listening

SECRET = "fl_very-secret-token"


@dataclass
class Answering:
    """What comes next, and what was asked."""

    url: str = ""
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    pause_s: float = 0.0
    asked: list[tuple[str, str, Any, dict[str, str]]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Answering]:
    plan = Answering()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            content = json.loads(self.rfile.read(length)) if length else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            plan.asked.append((self.command, self.path, content, headers))
            time.sleep(plan.pause_s)
            body = plan.body if isinstance(plan.body, bytes) else json.dumps(plan.body).encode()
            self.send_response_only(plan.status)
            for name, value in ({"date": format_datetime(datetime.now(UTC))} | plan.headers).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815 - the base class looks for this name

        def log_message(self, *args: object) -> None: ...

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with listening(http) as plan.url:
        yield plan


@pytest.fixture
def client(server: Answering) -> Iterator[LeaseClient]:
    made = LeaseClient(
        server.url + "/faultline/",
        token=lambda: SECRET,
        hook="slurm@head",
        cluster="orion",
        clock=SystemClock(),
        timeout_s=1.0,
        margin_s=5.0,
    )
    yield made
    made.close()


def item(**changes: Any) -> dict[str, Any]:
    return ITEM | {"expires_at": (datetime.now(UTC) + timedelta(seconds=60)).isoformat()} | changes


def test_a_lease_is_asked_for_as_the_contract_says(server: Answering, client: LeaseClient) -> None:
    server.body = [item()]
    [request] = client.lease(1, 60)
    [(method, path, asked, headers)] = server.asked
    assert (method, path) == ("POST", "/faultline/api/v1/resubmissions:lease")
    assert asked == {"hook": "slurm@head", "cluster": "orion", "max": 1, "seconds": 60}
    assert headers["authorization"] == f"Bearer {SECRET}"
    left = (request.good_until - datetime.now(UTC)).total_seconds()
    assert 45 < left <= 55  # the margin is taken off


def test_the_services_clock_may_show_another_time(server: Answering, client: LeaseClient) -> None:
    theirs = datetime.now(UTC) - timedelta(hours=3)
    server.headers = {"date": format_datetime(theirs)}
    server.body = [item(expires_at=(theirs + timedelta(seconds=30)).isoformat())]
    [request] = client.lease(1, 60)
    left = (request.good_until - datetime.now(UTC)).total_seconds()
    assert 15 < left <= 26


def test_a_request_that_ends_before_its_lease_counts_as_ended(server: Answering, client: LeaseClient) -> None:
    server.body = [item(valid_until=(datetime.now(UTC) + timedelta(seconds=10)).isoformat())]
    [request] = client.lease(1, 60)
    assert (request.good_until - datetime.now(UTC)).total_seconds() <= 6


def test_what_has_expired_is_refused(server: Answering, client: LeaseClient) -> None:
    server.body = [item(valid_until=(datetime.now(UTC) - timedelta(seconds=10)).isoformat())]
    assert client.lease(1, 60) == []
    assert server.asked[-1][2]["result"] == "refused"
    assert "expired" in server.asked[-1][2]["detail"]


def test_an_unusable_request_is_refused_and_the_next_one_is_kept(server: Answering, client: LeaseClient) -> None:
    server.body = [item(exclude_nodes=["--uid=0"]), item(request_id="r2"), item(request_id="../x")]
    assert [one.request_id for one in client.lease(3, 60)] == ["r2"]
    [_, (_, path, result, _)] = server.asked
    assert path.endswith("/resubmissions/r1:ack")
    assert (result["result"], result["lease_token"]) == ("refused", "t")
    assert "exclude_nodes" in result["detail"]


def test_ack_and_fail_say_what_the_contract_asks(server: Answering, client: LeaseClient) -> None:
    client.ack("r1", "t", Settled("done", "requeued", "8"))
    client.fail("r1", "t", "its option r\udce9 " + "x" * 5_000, None)
    assert server.asked.pop()[2]["error"] == ("its option r? " + "x" * 5_000)[:4_000]
    client.fail("r2", "t", "x" * 9000, 1e9)
    (_, first, ack, _), (_, second, failed, _) = server.asked
    assert first.endswith("/r1:ack")
    assert ack == {"lease_token": "t", "result": "done", "new_job_id": "8", "detail": "requeued"}
    assert second.endswith("/r2:fail")
    assert (len(failed["error"]), failed["retry_after_s"]) == (4000, 86400.0)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, LeaseLost),
        (409, LeaseLost),
        (429, ServiceUnavailable),
        (500, ServiceUnavailable),
        (503, ServiceUnavailable),
        (401, ServiceRefused),
        (403, ServiceRefused),
        (422, ServiceRefused),
        (302, ServiceRefused),  # a redirect is not followed: the token stays here
    ],
)
def test_each_answer_has_its_meaning(
    server: Answering, client: LeaseClient, status: int, error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    server.status, server.body = status, {"detail": "because"}
    server.headers = {"retry-after": "7", "location": "http://127.0.0.1:1/"}
    with pytest.raises(error, match="because") as caught:
        client.ack("r1", "t", Settled("done", ""))
    assert SECRET not in str(caught.value) + caplog.text
    if isinstance(caught.value, ServiceUnavailable):
        assert caught.value.retry_after_s == 7.0


@pytest.mark.parametrize(
    ("header", "seconds"), [("90000", 3600.0), ("soon", None), ("", None), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0)]
)
def test_retry_after_is_a_number_or_a_date_within_reason(
    server: Answering, client: LeaseClient, header: str, seconds: float | None
) -> None:
    server.status, server.headers = 503, {"retry-after": header}
    with pytest.raises(ServiceUnavailable) as caught:
        client.lease(1, 60)
    assert caught.value.retry_after_s == seconds


@pytest.mark.parametrize("body", [b"<html>", {"items": 5}, "x", b"", b"[" * 100_000])
def test_an_answer_that_is_no_list_of_requests_is_retried(server: Answering, client: LeaseClient, body: object) -> None:
    server.body = body
    with pytest.raises(ServiceUnavailable, match="no list"):
        client.lease(1, 60)


def test_a_slow_oversized_or_missing_answer_is_retried(server: Answering, client: LeaseClient) -> None:
    server.pause_s = 1.5
    with pytest.raises(ServiceUnavailable, match="within 1 s"):
        client.lease(1, 60)
    server.pause_s, server.body = 0, b"[" + b" " * (5 << 20) + b"]"
    with pytest.raises(ServiceUnavailable, match="too large"):
        client.lease(1, 60)
    nowhere = LeaseClient("http://127.0.0.1:1", token=None, hook="h", cluster="c", clock=SystemClock(), timeout_s=1.0)
    with pytest.raises(ServiceUnavailable):
        nowhere.lease(1, 60)
    nowhere.close()


def test_only_a_certificate_that_is_trusted_gets_the_token(server: Answering) -> None:
    url = server.url.replace("http:", "https:")
    careful = LeaseClient(
        url, token=lambda: SECRET, hook="h", cluster="c", clock=SystemClock(), tls=ssl.create_default_context()
    )
    with pytest.raises(ServiceUnavailable):
        careful.lease(1, 60)
    assert not server.asked
    careful.close()


def test_waiting_requests_are_listed_without_a_lease(server: Answering, client: LeaseClient) -> None:
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    server.body = {"items": [item(state="waiting"), item(request_id="r2", not_before=later)], "next_cursor": None}
    assert [one.request_id for one in client.waiting(50)] == ["r1"]
    [(method, path, _, _)] = server.asked
    assert (method, path.partition("?")[2]) == ("GET", "state=waiting&cluster=orion&limit=50")
