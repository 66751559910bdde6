"""Input that once caused an internal error is refused with a reason."""

from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from service.db.session import Store
from service.errors import InvalidInput, NotFound
from service.web.app import create_app
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import job, put
from tests.service.web.access.test_auth import form_token
from tests.service.web.world import HERE, event, lines, make_world


@pytest.mark.parametrize("field", ["cause", "side", "note", "category"])
def test_a_lone_surrogate_has_an_answer(client: TestClient, field: str) -> None:
    client.post("/api/v1/events", content=lines(event("1")))
    body = b'{"kind": "correct", "side": "user", "' + field.encode() + b'": "\\ud800"}'
    answer = client.post("/api/v1/failures/1/feedback", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code < 500, answer.text


@pytest.mark.parametrize("nested", ["a = " + "[" * 90_000, "a = " + "{a=" * 40_000, "[" + "a." * 50_000 + "a]\nb=1"])
def test_a_nested_policy_is_refused(client: TestClient, nested: str) -> None:
    answer = client.post("/api/v1/policy:replay", json={"policy": nested})
    assert answer.status_code == 422, answer.text[:300]


def test_a_lone_surrogate_in_an_address_has_an_answer(client: TestClient) -> None:
    for path in ("/api/v1/failures?cause=%ED%A0%80", "/failures?cause=%ED%A0%80", "/api/v1/nothing/%ED%A0%80"):
        assert client.get(path).status_code < 500


TIMES = ("0001-01-01", "0001-01-01T00:00:00+23:59", "9999-12-31", "9999-12-31T23:59:59Z", "3650000d", "")


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/", "/goodput", "/failures", "/api/v1/stats", "/api/v1/goodput"])
def test_the_first_and_last_days_of_the_calendar_have_an_answer(client: TestClient, path: str) -> None:
    edges = [
        event("1", ended_at="0001-01-01T00:00:00Z", started_at="0001-01-01T00:00:00Z"),
        event("2", ended_at="9999-12-31T23:59:59.999999Z", started_at="0001-01-01T00:00:00Z", gpus=2**53),
    ]
    client.post("/api/v1/events", content=lines(event("3"), *edges))
    for since in TIMES:
        for until in TIMES:
            status = client.get(path, params={"since": since, "until": until}).status_code
            assert status in {200, 422}, (since, until, status)


def test_a_null_character_in_a_name_has_an_answer_on_both_databases(
    store: Store, clock: FrozenClock, tmp_path: Path
) -> None:
    """PostgreSQL refuses it in texts."""
    put(store, [job("a")])
    plain = make_world(tmp_path)
    app = create_app(replace(plain.services, store=store, clock=clock))
    plain.store.close()
    client = TestClient(app, base_url=HERE, raise_server_exceptions=False)
    pages = [f"{page}{name}=" for page in ("/?since=28d&", "/?", "/goodput?") for name in ("cluster", "queue", "team")]
    pages += [f"/api/v1/{page}?{name}=" for page in ("stats", "goodput") for name in ("cluster", "queue", "team")]
    pages += ["/reports/2026-W47?cluster=", "/reports/2026-W47?team=", "/unsubscribe/"]
    found = {page: client.get(f"{page}a%00b").status_code for page in pages}
    form = {"form_token": form_token(client)}
    for page in ("/deliveries/1/a%00b/resend", "/nodes/a%00b/c%00d/repaired", "/groups/1/act"):
        found[page] = client.post(page, data={**form, "action": "assign", "to": "a\0b"}).status_code
    assert [page for page, status in found.items() if status >= 500] == []


def test_a_value_that_the_database_does_not_take_is_invalid_input(store: Store) -> None:
    """One text of a route that nobody cleaned was a traceback and an internal error."""
    expected = InvalidInput if store.dialect == "postgresql" else NotFound
    with pytest.raises(expected), store.unit_of_work() as work:
        work.deliveries.send_again(1, "a\0b")


def test_a_group_with_an_end_at_the_border_of_the_calendar_has_a_page(client: TestClient) -> None:
    for number, ended in enumerate(("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")):
        client.post("/api/v1/events", content=lines(event(str(number), ended_at=ended, started_at=None)))
        [group] = client.get("/api/v1/groups").json()["items"]
        assert client.get(f"/groups/{group['id']}").status_code == 200


@pytest.mark.parametrize("zero", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z"])
def test_a_start_that_is_zero_is_not_known(client: TestClient, zero: str) -> None:
    client.post("/api/v1/events", content=lines(event("1", started_at=zero, submitted_at=zero)))
    failure = client.get("/api/v1/failures/1").json()["failure"]
    assert (failure["started_at"], failure["gpu_hours_lost"]) == (None, 0)
    again = client.post("/api/v1/events", content=lines(event("1", started_at=zero, submitted_at=zero))).json()
    assert again["duplicates"] == 1
