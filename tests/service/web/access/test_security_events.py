"""Events of security are logged, counted, and stored for known people."""

import logging

import orjson
import pytest

from service.people import passwords
from service.web.services import REFUSALS_STORED
from tests.service.web.access.test_auth import form_token, log_in
from tests.service.web.world import World, event, lines


def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, str]]:
    return [orjson.loads(one.message) for one in caplog.records if one.name == "faultline.security"]


def audited(world: World, what: str) -> list[tuple[str, str]]:
    with world.store.reading() as reading:
        return [(one.who, one.subject) for one in reading.audit_log.page(limit=100).items if one.what == what]


def counted(world: World, kind: str) -> float:
    return world.services.telemetry.registry.get_sample_value("faultline_security_events_total", {"event": kind}) or 0


def test_log_ins_and_failed_ones_are_events(guarded: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "faultline.security")
    with guarded.store.unit_of_work() as work:
        work.accounts.create("ana", "viewer", password=passwords.hash_password("correct horse battery"))
    with guarded.client() as client:
        form = {"name": "ana", "password": "wrong horse battery", "form_token": form_token(client)}
        assert client.post("/login", data=form).status_code == 401
        assert client.post("/login", data=form | {"password": "correct horse battery"}).status_code == 303
    assert audited(guarded, "login") == [("ana", "account/ana")]
    kinds = [one["event"] for one in logged(caplog)]
    assert kinds.count("login.failed") == 1
    assert kinds.count("login") == 1
    assert (counted(guarded, "login.failed"), counted(guarded, "login")) == (1, 1)
    assert "horse" not in caplog.text


def test_strangers_are_counted_and_not_stored(guarded: World) -> None:
    with guarded.client() as client:
        for _ in range(3):
            assert client.get("/api/v1/stats").status_code == 401
        assert client.post("/login", data={"token": "x", "form_token": ""}).status_code == 403
    assert counted(guarded, "request.unauthenticated") == 3
    assert counted(guarded, "request.denied") == 1
    with guarded.store.reading() as reading:
        assert reading.audit_log.page(limit=10).items == ()


def test_a_refused_request_of_a_known_caller_is_stored_with_the_name(
    guarded: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "faultline.security")
    with guarded.client(guarded.token("read", name="probe")) as client:
        assert client.get("/api/v1/audit-log").status_code == 403
    assert audited(guarded, "request.denied") == [("probe", "/api/v1/audit-log")]
    assert [one.get("who") for one in logged(caplog) if one["event"] == "request.denied"] == ["probe"]


def test_refused_requests_of_a_known_caller_do_not_fill_the_database(guarded: World) -> None:
    with guarded.client(guarded.token("read", name="probe")) as client:
        assert {client.get("/api/v1/audit-log").status_code for _ in range(2 * REFUSALS_STORED)} == {403}
    assert len(audited(guarded, "request.denied")) == REFUSALS_STORED
    assert counted(guarded, "request.denied") == 2 * REFUSALS_STORED


def test_limits_are_events(guarded: World) -> None:
    with guarded.client() as client:
        form = {"name": "ana", "password": "wrong horse battery", "form_token": form_token(client)}
        statuses = [client.post("/login", data=form).status_code for _ in range(11)]
    assert statuses[-1] == 429
    assert counted(guarded, "login.limited") == 1


def test_the_first_use_of_a_token_from_an_address_is_stored_once(guarded: World) -> None:
    secret = guarded.token("read", name="probe")
    with guarded.client(secret) as client:
        client.get("/api/v1/stats")
        client.get("/api/v1/stats")
    guarded.services.token_addresses.clear()  # as after a restart
    with guarded.client(secret) as client:
        client.get("/api/v1/stats")
    assert audited(guarded, "token.address") == [("probe", "token/probe")]


def test_exports_and_golden_changes_name_who_did_them(guarded: World) -> None:
    with guarded.client(guarded.token("admin", name="root")) as client:
        client.post("/api/v1/events", content=lines(event("1")))
        for path in ("/api/v1/failures/export.csv", "/api/v1/failures/export.json", "/api/v1/labels"):
            assert client.get(path).status_code == 200
        label = {"kind": "correct", "side": "user", "cause": "USER.1"}
        assert client.post("/api/v1/failures/1/feedback", json=label).status_code == 200
        assert client.put("/api/v1/failures/1/golden", json={"golden": True}).status_code == 409, "their own label"
        with guarded.client(guarded.token("admin", name="other")) as other:
            assert other.post("/api/v1/failures/1/feedback", json=label).status_code == 200
        assert client.put("/api/v1/failures/1/golden", json={"golden": True}).status_code == 200
    assert sorted(audited(guarded, "export")) == [
        ("root", "failures.csv"),
        ("root", "failures.json"),
        ("root", "labels"),
    ]
    assert audited(guarded, "label.golden") == [("root", "failure/1")]


def test_new_sessions_of_tokens_are_events(guarded: World) -> None:
    secret = guarded.token("read", name="probe")
    with guarded.client() as client:
        assert log_in(client, secret) == 303
    assert audited(guarded, "login") == [("probe", "token/probe")]
