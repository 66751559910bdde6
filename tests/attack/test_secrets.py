"""Secrets in any text that is sent in reach neither the database nor a page."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlencode

import orjson
import pytest
from fastapi.testclient import TestClient
from pydantic import BaseModel

from service.contracts.event import JobCompletion
from service.nodes.records import FleetSettings
from service.nodes.statistics_updater import NodeStatisticsUpdater
from service.pipeline.event_redaction import IDENTITY
from tests.service.databases import everything_stored
from tests.service.web.access.test_auth import form_token
from tests.service.web.world import World, event, lines, make_world

NUMBER = iter(range(1_000_000, 10_000_000))


@pytest.fixture
def world(new_database: Callable[[], str], tmp_path: Path) -> Iterator[World]:
    made = make_world(tmp_path, new_database())
    yield made
    made.store.close()


def secret() -> str:
    """A token of a known format; a new one at each call."""
    return f"ghp_aB{next(NUMBER)}cDeFgHiJkLmNoPqRsTuVwXyZ12"


def with_secrets(model: type[BaseModel], place: str = "", *, secret: Callable[[], str] = secret) -> dict[str, Any]:
    """A value with a secret for each text of a model and of the models in it, found by their annotations."""
    found: dict[str, Any] = {"unknown_field": f"note {secret()}", "nested": {"deeper": [f"x {secret()}"]}}
    for name, field in model.model_fields.items():
        kinds = [field.annotation, *get_args(field.annotation)]
        kinds += [one for kind in kinds for one in get_args(kind)]
        inner = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        if not place and (name in IDENTITY or name == "intake_problems"):
            continue
        if inner is not None:
            value: Any = with_secrets(inner, name, secret=secret)
        elif dict in (getattr(kind, "__origin__", None) for kind in kinds):
            value = (
                {"a": {"b": f"x {secret()}"}} if name == "topology" else {"a": f"x {secret()}", f"k {secret()}": "v"}
            )
        elif str in kinds:
            value = f"s3://bucket/{secret()}/x" if name == "uri" else f"some {secret()} text"
        else:
            continue
        found[name] = [value] if tuple in (getattr(kind, "__origin__", None) for kind in kinds) else value
    return found


def test_every_text_of_an_event_is_redacted(world: World) -> None:
    sent = with_secrets(JobCompletion)
    assert {"checkpoint", "logs", "node_events", "labels", "nodes", "topology", "command"} <= sent.keys()
    with world.client() as client:
        answer = client.post("/api/v1/events?wait=verdict", content=lines(event("1") | sent))
        assert answer.json()["accepted"] == 1, answer.text
        shown = answer.text + everything_shown(client)
    stored = everything_stored(world.store)
    assert "ghp_aB" not in shown
    assert b"ghp_aB" not in stored
    assert "[redacted]" in shown


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_no_encoding_of_a_body_hides_a_secret(world: World, encoding: str) -> None:
    """The application reads JSON in each encoding of the standard, so the redaction has to read the same."""
    hidden = secret()
    with world.client() as client:
        client.post("/api/v1/events", content=lines(event("1")))
        body = orjson.dumps({"kind": "contest", "note": f"see {hidden}"}).decode().encode(encoding)
        answer = client.post("/api/v1/failures/1/feedback", content=body, headers={"Content-Type": "application/json"})
        assert hidden not in answer.text + everything_shown(client)
    assert hidden.encode() not in everything_stored(world.store)


@pytest.mark.parametrize("kind", ["escaped", "bytes", "parts"])
def test_no_encoding_of_a_form_hides_a_secret(world: World, kind: str) -> None:
    hidden = secret()
    with world.client() as client:
        client.post("/api/v1/events", content=lines(event("1")))
        form = {"form_token": form_token(client), "reason": f"gr\u00fc\u00dfe {hidden}"}
        headers = {"Origin": "http://127.0.0.1:8080", "Content-Type": "application/x-www-form-urlencoded"}
        path = "/automation/stop"
        if kind == "parts":
            del headers["Content-Type"]
            answer = client.post(path, files={name: (None, text) for name, text in form.items()}, headers=headers)
            assert answer.status_code == 422, answer.text
        else:  # as a browser sends it, and as bytes that are not escaped
            escaped, plain = urlencode(form), "&".join(f"{name}={text}" for name, text in form.items())
            content = escaped if kind == "escaped" else plain
            assert client.post(path, content=content.encode(), headers=headers).status_code == 303
        assert hidden not in everything_shown(client) + client.get("/automation").text
    assert hidden.encode() not in everything_stored(world.store)


@pytest.mark.parametrize("depth", [300, 900, 100_000])
def test_a_body_of_many_levels_is_refused(world: World, depth: int) -> None:
    with world.client() as client:
        body = b'{"kind": "contest", "note": "x", "more": ' + b"[" * depth + b"]" * depth + b"}"
        answer = client.post("/api/v1/failures/1/feedback", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text


def everything_shown(client: TestClient) -> str:
    paths = ("/failures/1", "/failures", "/groups/1", "/", "/nodes", "/api/v1/failures/1?logs=true", "/api/v1/failures")
    more = ("/api/v1/failures/export.csv", "/api/v1/labels", "/api/v1/groups", "/api/v1/nodes", "/api/v1/resubmissions")
    return "".join(client.get(path).text for path in paths + more)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/failures/1/feedback", {"kind": "contest", "note": "see %s"}),
        ("POST", "/api/v1/failures/1/feedback", {"kind": "correct", "side": "user", "cause": "USER.1", "note": "%s"}),
        ("POST", "/api/v1/failures/1:hold", {"comment": "wait for %s"}),
        ("POST", "/api/v1/failures/1:never", {"comment": "%s"}),
        ("POST", "/api/v1/automation:stop", {"reason": "leak of %s"}),
        ("POST", "/api/v1/groups/1/actions", {"action": "comment", "text": "with %s"}),
        ("POST", "/api/v1/groups/1/actions", {"action": "link", "ticket": "https://tickets.example/%s"}),
        ("POST", "/api/v1/nodes/orion/gpu018:repaired", {"note": "%s"}),
        ("PUT", "/api/v1/views", {"name": "mine", "page": "/failures", "query": "q=%s"}),
    ],
)
def test_every_text_of_a_person_is_redacted(world: World, method: str, path: str, body: dict[str, str]) -> None:
    with world.client() as client:
        client.post("/api/v1/events", content=lines(event("1")))
        NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()
        hidden = secret()
        sent = {name: text.replace("%s", hidden) for name, text in body.items()}
        answer = client.request(method, path, json=sent)
        assert answer.status_code < 300, answer.text
        assert hidden not in answer.text + everything_shown(client)
        with world.store.reading() as reading:
            assert hidden not in str(reading.audit_log.page(limit=50))
    stored = everything_stored(world.store)
    assert hidden.encode() not in stored
