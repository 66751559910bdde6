"""One sender or one client can't keep others waiting, and people do not share what is theirs."""

import http.client
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry, Counter, MetricsHandler

from classifiers.case_builder import build_case
from classifiers.extraction import stream_reader
from classifiers.extraction.evidence_items import EvidenceItem
from service.clock import SystemClock
from service.contracts.event import LOGS_MOST, from_object
from service.deliveries.records import NewDelivery, OutboxMessage
from service.hooks.webhook_listener import WebhookListener
from service.jobs.same_job import runs_of_job
from service.listeners import MOST_CONNECTIONS, BoundedServer, serve_metrics
from service.logs import fetch
from service.logs.fetch import LogFetcher
from service.people.login_limits import LoginAttempts, SharedLimit
from service.people.repository.saved_views import MOST_VIEWS
from service.resubmissions.repository import lineages
from service.web.app import create_app
from service.web.limits.caller_limits import ActionLimits, RateLimit
from service.web.request_gate import STREAMED
from service.web.services import REFUSALS_STORED
from service.web.sessions import COOKIE, LIFETIME
from tests.classifiers.packaged_catalogue import EXTRACTOR
from tests.service.web.access.test_auth import form_token
from tests.service.web.test_app import PUBLIC, WANTED
from tests.service.web.world import HERE, World, event, lines, make_world, stop_rate_windows

JUDGED_S = 20.0  # of processor time; a tenth of it is usual


def test_of_an_event_with_thousands_of_logs_only_some_are_read_and_the_note_says_so() -> None:
    logs = [{"rank": rank, "stream": "stderr", "tail": f"RuntimeError: {rank}"} for rank in range(LOGS_MOST - 1)]
    job = from_object(event("1", logs=[*logs, {"rank": None, "stream": "stderr", "tail": "launcher"}]))
    [found] = LogFetcher(()).fetch_all([job])
    read = [one for one in found.streams if one.missing is None]
    assert len(read) == fetch.LOGS_MOST
    assert any(one.rank is None for one in read)
    ranks = [one.rank for one in read if one.rank is not None]
    assert min(ranks) < 20
    assert max(ranks) > LOGS_MOST - 20
    [note] = [one.missing for one in found.streams if one.missing is not None]
    assert f"{LOGS_MOST - fetch.LOGS_MOST:,} further logs" in note


def test_lines_of_a_failure_are_bounded_and_the_verdict_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_reader, "MOST_LINES", 100)
    made = 0

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal made
        made += 1
        return EvidenceItem(*given, **named)

    monkeypatch.setattr("classifiers.extraction.stream_reader.EvidenceItem", counted)
    tails = ["\n".join(f"RuntimeError: wrong value {rank} at {line}" for line in range(50)) for rank in range(10)]
    case = build_case(event("1", logs=[{"rank": r, "stream": "stderr", "tail": tail} for r, tail in enumerate(tails)]))
    extraction = EXTRACTOR.extract(case)
    assert 0 < made <= 100 + 2  # and the scheduler's own line
    assert any("400 lines in the middle of logs" in one for one in extraction.case.missing), extraction.case.missing


@pytest.mark.parametrize(("nodes", "read"), [(1, 1_000), (100_000, 100)])
def test_of_thousands_of_node_events_some_are_judged_and_the_verdict_says_so(nodes: int, read: int) -> None:
    """The time grew with the square of their number: 8,000 took 24 s."""
    at = "2026-11-16T08:59:00Z"
    text = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus"
    found = [{"at": at, "node": "n0", "source": "kernel", "text": f"{text} {one}"} for one in range(LOGS_MOST)]
    names = [f"n{one}" for one in range(nodes)]
    case = build_case(event("1", nodes=names, node_events=found, logs=[]))
    assert [one.text for one in case.node_events] == [one["text"] for one in found[-read:]]
    began = time.process_time()
    extraction = EXTRACTOR.extract(case)
    assert time.process_time() - began < JUDGED_S
    assert any(f"{LOGS_MOST - read:,} node events" in one for one in extraction.case.missing)


class Ran(NamedTuple):
    """What tells the runs of one job from those of another with the same id."""

    attempt: int | None
    ended_at: datetime
    user: str | None = "ana"
    name: str | None = "train"
    pod: str | None = None
    submitted_at: datetime | None = None
    started_at: datetime | None = None


def test_a_job_that_ran_thousands_of_times_delays_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further run compared each of the earlier ones with each other: 2,000 held the intake up for minutes."""
    at = datetime(2026, 11, 1, tzinfo=UTC)
    runs = [Ran(attempt=number, ended_at=at + timedelta(minutes=number)) for number in range(40_000)]
    began = time.process_time()
    assert len(runs_of_job(runs, runs[500])) == len(runs)
    assert time.process_time() - began < JUDGED_S / 4
    monkeypatch.setattr(lineages, "RUNS_MOST", 3)
    world = make_world(tmp_path)
    with world.client() as client:
        again = [event("7", attempt=number, ended_at=f"2026-11-0{number}T00:00:00Z") for number in range(1, 7)]
        assert client.post("/api/v1/events", content=lines(*again, event("8"))).json()["accepted"] == 7
    with world.store.reading() as reading:
        found = reading.lineages.attempts([("orion", "7"), ("orion", "8")])
    world.store.close()
    assert [(one.job_id, one.attempt) for one in found] == [("7", 4), ("7", 5), ("7", 6), ("8", 0)]


def test_slow_connections_do_not_block_the_listener_of_a_hook() -> None:
    made = WebhookListener("127.0.0.1", 0, lambda: [b"k" * 32], lambda: None, SystemClock())
    with made as listener, ExitStack() as held:
        slow = [
            held.enter_context(socket.create_connection(("127.0.0.1", listener.port), timeout=120))
            for _ in range(2 * MOST_CONNECTIONS)
        ]
        for one in slow[-3:]:
            one.sendall(b"POST / HTTP/1.1\r\n")
        caller = http.client.HTTPConnection("127.0.0.1", listener.port, timeout=120)
        caller.request("POST", "/", body=b"{}")
        assert caller.getresponse().status == 401
        assert slow[0].recv(1) == b""  # the oldest made room


def test_slow_connections_do_not_take_the_descriptors_of_a_worker() -> None:
    registry = CollectorRegistry()
    Counter("jobs", "Jobs.", registry=registry).inc()
    with serve_metrics("127.0.0.1", 0, registry) as server, ExitStack() as held:
        held.callback(server.shutdown)
        place = ("127.0.0.1", server.server_address[1])
        slow = [held.enter_context(socket.create_connection(place, timeout=120)) for _ in range(4 * MOST_CONNECTIONS)]
        caller = http.client.HTTPConnection(*place, timeout=120)
        caller.request("GET", "/metrics")
        assert b"jobs_total 1.0" in caller.getresponse().read()
        assert slow[0].recv(1) == b""
        deadline = time.monotonic() + 30  # a thread ends a moment after its connection was closed
        while connection_threads() > MOST_CONNECTIONS + 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert connection_threads() <= MOST_CONNECTIONS + 1


def test_headers_of_megabytes_do_not_fill_the_memory_of_a_worker() -> None:
    """Sixteen connections with a hundred lines of 64 KiB each took 620 MiB."""
    with serve_metrics("127.0.0.1", 0, CollectorRegistry()) as server, ExitStack() as held:
        held.callback(server.shutdown)
        for line, lines, status in (("x" * 100, 90, b"200"), ("x" * 1_000, 90, b"431"), ("x" * 60_000, 1, b"431")):
            with socket.create_connection(("127.0.0.1", server.server_port), timeout=120) as made:
                headers = "".join(f"X-{number}: {line}\r\n" for number in range(lines))
                with suppress(ConnectionError):  # the rest of a header that is refused is not read
                    made.sendall(f"GET /metrics HTTP/1.1\r\n{headers}\r\n".encode())
                assert made.recv(12)[9:] == status


def test_connections_of_a_burst_wait_for_their_turn() -> None:
    """Of more than six at the same moment, the others were dropped: they tried again after seconds."""
    with BoundedServer(("127.0.0.1", 0), MetricsHandler) as server, ExitStack() as held:  # it accepts none meanwhile
        for _ in range(50):
            held.enter_context(socket.create_connection(("127.0.0.1", server.server_port), timeout=0.5))


def connection_threads() -> int:
    return sum(thread.name.endswith("(process_request_thread)") for thread in threading.enumerate())


def test_a_token_and_an_account_of_one_name_share_no_views(tmp_path: Path) -> None:
    world = make_world(tmp_path, host="0.0.0.0")
    view = {"name": "mine", "page": "/failures", "query": "side=user"}
    with world.store.unit_of_work() as work:
        made = work.accounts.create("ana", "viewer", password="x")
        session = work.sessions.log_in(account_id=made.id, lasts=LIFETIME)
    secret = world.token("read", name="ana")
    with world.client(secret) as program, world.client() as person:
        person.cookies.set(COOKIE, session)
        assert program.put("/api/v1/views", json=view).status_code == 200
        assert person.get("/api/v1/views").json()["items"] == []
        assert program.get("/api/v1/views").json()["items"] == [view]
        with world.store.unit_of_work() as work:
            work.tokens.revoke("ana")
    with world.client(world.token("read", name="ana")) as successor:
        assert successor.get("/api/v1/views").json()["items"] == []
    world.store.close()


def test_an_import_of_labels_has_a_limited_number_of_lines(tmp_path: Path) -> None:
    """Each wrong line is named in the answer: 16 MiB of them made one of 240 MB."""
    world = make_world(tmp_path)
    with world.client() as client:
        assert client.post("/api/v1/labels", content=b"{}\n" * 100_001).status_code == 413
        assert len(client.post("/api/v1/labels", content=b"{}\n" * 10).json()["wrong"]) == 10
    world.store.close()


def few() -> ActionLimits:
    return ActionLimits(
        RateLimit(3),
        RateLimit(2),
        deliveries=SharedLimit("deliveries", 2, timedelta(hours=1)),
        logins=SharedLimit("logins", 2, timedelta(minutes=1)),
    )


def beside(world: World) -> World:
    """Another process over the same database."""
    services = replace(world.services, action_limits=few())
    return replace(world, services=services, app=create_app(services))


@pytest.fixture
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A server on which a caller may change three things a minute, export two files, and log in twice with a token."""
    stop_rate_windows(monkeypatch)
    made = make_world(tmp_path, host="0.0.0.0", action_limits=few())
    yield made
    made.store.close()


def test_every_request_that_changes_something_is_limited_for_who_does_not_operate_the_service(limited: World) -> None:
    """Each adds to the database, and most to the audit log: a script could fill both and hide what else it did."""
    changing = [
        (method, re.sub(r"\{[^}]+\}", "1", path.replace("{week}", "2026-W46")))
        for (method, path), scope in WANTED.items()
        if method in {"POST", "PUT", "DELETE", "PATCH"} and scope != PUBLIC and path not in STREAMED
    ]
    assert len(changing) > 60
    with limited.client(limited.token("read")) as client, limited.client(limited.token("act", name="op")) as operator:
        assert [client.delete("/api/v1/views/1").status_code for _ in range(3)] == [204] * 3
        for method, path in changing:
            refused = client.request(method, path)
            assert refused.status_code == 429, path
            assert 1 <= int(refused.headers["Retry-After"]) <= 60
            assert operator.request(method, path).status_code != 429, path
        assert client.get("/api/v1/failures").status_code == 200


def test_exports_and_logins_of_one_token_are_limited_since_each_is_in_the_audit_log(limited: World) -> None:
    token = limited.token("read")
    with limited.client(token) as client:
        exports = [f"/api/v1/{name}" for name in ("failures/export.csv", "labels", "failures/export.json", "labels")]
        assert [client.get(export).status_code for export in exports] == [200, 200, 429, 429]
        form = {"form_token": form_token(client), "token": token}
        assert [client.post("/login", data=form).status_code for _ in range(2)] == [303, 303]
    for process in (limited, beside(limited)):
        with process.client() as client:
            form = {"form_token": form_token(client), "token": token}
            assert client.post("/login", data=form).status_code == 429
    limited.clock.sleep(60)
    with limited.client() as client:
        form = {"form_token": form_token(client), "token": token}
        assert client.post("/login", data=form).status_code == 303


def test_successful_logins_of_one_person_are_limited_and_do_not_limit_others(limited: World) -> None:
    """Each hashes a password, of which three are hashed at a time, and adds to the audit log."""
    attempts = LoginAttempts(limited.store)

    def logs_in(name: str, address: str) -> bool:
        attempt = attempts.start(address, name)
        if attempt is not None:
            attempts.finish(attempt, succeeded=True)
        return attempt is not None

    assert [logs_in("ana", "10.0.0.1") for _ in range(31)] == [True] * 30 + [False]
    assert logs_in("ana", "10.0.0.2")
    assert logs_in("bo", "10.0.0.1")


def test_addresses_of_a_token_without_end_do_not_fill_the_audit_log(limited: World) -> None:
    token = limited.token("read")
    for number in range(3 * REFUSALS_STORED):
        with TestClient(limited.app, base_url=HERE, client=(f"2001:db8::{number:x}", 1)) as client:
            assert client.get("/api/v1/failures", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    with limited.store.reading() as reading:
        entries = reading.audit_log.page(limit=500).items
    assert sum(one.what == "token.address" for one in entries) == REFUSALS_STORED


def test_one_delivery_is_sent_again_a_few_times_an_hour_by_all_processes_together(limited: World) -> None:
    with limited.store.unit_of_work() as work:
        work.outbox.add([OutboxMessage("failure.diagnosed", f"failure/{number}", {}) for number in (1, 2)])
        work.deliveries.add([NewDelivery(number, "hook", "refused") for number in (1, 2)])

    def again(world: World, number: int) -> int:
        with world.client(token) as client:
            status = client.post(f"/api/v1/deliveries/{number}/hook:resend").status_code
        with world.store.unit_of_work() as work:
            work.deliveries.give_up_all("hook", "refused")
        return status

    token, other = limited.token("act"), beside(limited)
    assert again(limited, 9) == 404, "it is not stored, and does not count"
    assert [again(limited, 1), again(other, 1), again(limited, 1), again(other, 1)] == [200, 200, 429, 429]
    assert again(other, 2) == 200
    limited.clock.sleep(3_600)
    assert again(limited, 1) == 200


def test_a_person_has_a_limited_number_of_saved_filters(tmp_path: Path) -> None:
    world = make_world(tmp_path, action_limits=ActionLimits(changes=RateLimit()))
    with world.client(world.token("read")) as client, world.client(world.token("read", name="other")) as another:

        def save(who: TestClient, name: str) -> int:
            view = {"name": name, "page": "/failures", "query": "user=ana"}
            return who.put("/api/v1/views", json=view).status_code

        assert {save(client, f"filter {number}") for number in range(MOST_VIEWS)} == {200}
        assert save(client, "one more") == 422
        assert save(client, "filter 7") == 200, "the same name is replaced"
        assert save(another, "one more") == 200
        assert client.delete("/api/v1/views/filter 7").status_code == 204
        assert save(client, "one more") == 200
    world.store.close()
