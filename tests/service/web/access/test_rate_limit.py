"""The intake refuses a token that sends too many requests, before it reads their bodies."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.settings import read
from service.web.limits.caller_limits import RateLimit
from tests.service.web.access.test_security_events import counted
from tests.service.web.world import World, event, lines, make_world, stop_rate_windows


@pytest.fixture(autouse=True)
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_rate_windows(monkeypatch)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = make_world(tmp_path, host="0.0.0.0", intake_limit=RateLimit(3))
    yield made
    made.store.close()


def test_each_token_has_its_own_limit_and_learns_when_to_come_back(world: World) -> None:
    first, second = world.token("ingest", name="first"), world.token("ingest", name="second")
    with world.client(first) as client:
        statuses = [client.post("/api/v1/events", content=lines(event(str(number)))).status_code for number in range(3)]
        assert statuses == [200, 200, 200]
        refused = client.post("/api/v1/events", content=lines(event("4")))
        assert refused.status_code == 429
        assert refused.headers["content-type"] == "application/problem+json"
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert client.post("/api/v1/node-events", content=b"{}").status_code == 429
    with world.client(second) as client:
        assert client.post("/api/v1/events", content=lines(event("4"))).status_code == 200
    assert counted(world, "request.limited") == 2


def test_reading_is_not_limited(world: World) -> None:
    with world.client(world.token("admin")) as client:
        assert {client.get("/api/v1/failures").status_code for _ in range(6)} == {200}
        assert {client.get("/api/v1/labels").status_code for _ in range(6)} == {200}


def test_a_service_without_a_login_and_a_limit_of_nought_limit_nothing(tmp_path: Path) -> None:
    world = make_world(tmp_path, intake_limit=RateLimit(1))
    with world.client() as client:
        assert {client.post("/api/v1/events", content=lines(event())).status_code for _ in range(4)} == {200}
    world.store.close()
    unlimited = read({"FAULTLINE_INTAKE_REQUESTS_PER_MINUTE": "0"}).intake_limit()
    assert [unlimited.exceeded("token") for _ in range(10)] == [None] * 10


def test_the_setting_limits_the_requests_of_a_minute() -> None:
    limit = read({"FAULTLINE_INTAKE_REQUESTS_PER_MINUTE": "2"}).intake_limit()
    assert [limit.exceeded("token") for _ in range(2)] == [None, None]
    wait_s = limit.exceeded("token")
    assert wait_s is not None
    assert 1 <= wait_s <= 60
