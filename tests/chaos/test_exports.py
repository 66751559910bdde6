"""Files of the API while PostgreSQL restarts and retention deletes: complete, or visibly not; never half a file."""

import csv
import http.client
import io
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from service.db.session import Store
from service.feedback import label_export
from service.feedback.records import FeedbackInput, Labels
from service.logs.fetch import LogFetcher
from service.maintenance import Retention, RetentionDays
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.recommend import policy
from service.telemetry import Telemetry
from service.web import export, views
from tests.labs import postgres
from tests.labs.postgres import Postgres
from tests.service.frozen_clock import FrozenClock
from tests.service.pipeline.diagnosis import diagnose_with
from tests.service.web.live import serving
from tests.service.web.world import NOW, ByWord, World, event, lines, make_world

FAILURES, PAGE = 60, 10
CSV, JSON, LABELS = "/api/v1/failures/export.csv", "/api/v1/failures/export.json", "/api/v1/labels"
OLD = timedelta(days=800)  # the age of every second failure


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server of this file's own, since the tests stop it."""
    with postgres.server() as made:
        yield made


@pytest.fixture
def world(server: Postgres, tmp_path: Path) -> Iterator[World]:
    clock, telemetry = FrozenClock(NOW), Telemetry()
    store = Store(server.create(f"exports_{uuid4().hex[:8]}"), clock=clock)
    store.upgrade()
    tools = DiagnosisTools(store, LogFetcher(()), ByWord(), policy.built_in(), clock, telemetry)
    made = make_world(tmp_path, store=store, ingest=diagnose_with(tools), clock=clock)
    old = {name: (NOW - OLD - timedelta(hours=ago)).isoformat() for name, ago in (("started_at", 3), ("ended_at", 1))}
    with made.client() as client:
        for at, times, numbers in ((NOW - OLD, old, range(1, FAILURES, 2)), (NOW, {}, range(0, FAILURES, 2))):
            clock.at = at
            sent = [event(f"job-{number}", **times) for number in numbers]
            assert client.post("/api/v1/events", content=lines(*sent)).json()["accepted"] == len(sent)
    yield made
    store.close()
    made.store.close()


@pytest.fixture
def during(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Do something before the third page of an export is read, whoever reads it."""
    monkeypatch.setattr(export, "_PAGE_SIZE", PAGE)
    monkeypatch.setattr(label_export, "_PAGE", PAGE)

    def install(action: Callable[[], object]) -> None:
        for module, name in ((views, "failures"), (label_export, "_is_exported")):
            original = getattr(module, name)
            calls = iter(range(10**6))
            before_third = 2 if module is views else 2 * PAGE

            def page(
                *given: Any,
                _original: Any = original,
                _calls: Iterator[int] = calls,
                _at: int = before_third,
                **named: Any,
            ) -> Any:
                if next(_calls) == _at:
                    action()
                return _original(*given, **named)

            monkeypatch.setattr(module, name, page)

    return install


def label_all(world: World) -> None:
    with world.client() as client:
        for one in client.get(JSON).json():
            world.services.feedback.add(one["id"], "ana", FeedbackInput("correct", Labels(side="user", cause="USER.1")))


def ask(address: str, path: str, version: int = 11, token: str | None = None) -> tuple[int, bytes, bool]:
    """The status, the content as far as it came, and whether the client saw the end of the file."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)
    connection._http_vsn = version  # type: ignore[attr-defined]  # the library has no public way to speak HTTP/1.0
    connection._http_vsn_str = {11: "HTTP/1.1", 10: "HTTP/1.0"}[version]  # type: ignore[attr-defined]
    try:
        login = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request("GET", path, headers={"Host": urlsplit(address).netloc, **login})
        answer = connection.getresponse()
        try:
            return answer.status, answer.read(), True
        except http.client.IncompleteRead as error:
            return answer.status, error.partial, False
    finally:
        connection.close()


def rows(path: str, content: bytes) -> list[str]:
    if path == CSV:
        return [row["job_id"] for row in csv.DictReader(io.StringIO(content.decode()))]
    if path == JSON:
        return [row["job_id"] for row in json.loads(content)]
    return [json.loads(line)["id"] for line in content.splitlines()]


@pytest.mark.parametrize("version", [11, 10])
@pytest.mark.parametrize("path", [CSV, JSON, LABELS])
def test_a_file_that_a_stopped_database_cuts_off_does_not_look_whole(
    world: World, server: Postgres, during: Callable[[Callable[[], object]], None], path: str, version: int
) -> None:
    label_all(world)
    with world.services.store.unit_of_work() as work:
        token = work.tokens.create("reader", ["admin"])[1]  # without a login, HTTP/1.0 is refused
    with serving(world.app) as address:
        status, content, whole = ask(address, path, version, token)
        assert (status, whole, len(set(rows(path, content)))) == (200, True, FAILURES)
        during(server.stop)
        try:
            status, content, whole = ask(address, path, version, token)
            assert ask(address, path, token=token)[0] == 503  # before the first page nothing has been sent
        finally:
            server.start()
        if version == 11:
            assert (status, whole) == (200, False)
            assert content  # the part that was sent
        else:
            assert status == 503
        again, content, whole = ask(address, path, version, token)
        assert (again, whole, len(set(rows(path, content)))) == (200, True, FAILURES)


@pytest.mark.parametrize("path", [CSV, JSON, LABELS])
def test_a_restart_between_two_pages_and_rows_that_retention_deletes_leave_a_whole_file(
    world: World, server: Postgres, during: Callable[[Callable[[], object]], None], path: str
) -> None:
    if path == LABELS:
        label_all(world)
    retention = Retention(world.services.store, world.clock, RetentionDays(rows=730, verdicts=0, logs=730, done=0))
    during(retention.run_if_due)
    with serving(world.app) as address:
        status, content, whole = ask(address, path)
        found = rows(path, content)
        assert (status, whole) == (200, True)
        assert len(found) == len(set(found)), "no row twice"
        kept = rows(path, ask(address, path)[1])
        assert len(kept) == FAILURES // 2
        assert set(kept) <= set(found), "what was stored all the time is in the file"
        server.restart()
        assert sorted(rows(path, ask(address, path)[1])) == sorted(kept)
