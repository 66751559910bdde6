"""The failure page, the log viewer and the API when a log in object storage cannot be read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.log_storage.log_bodies import ObjectLogs
from service.telemetry import Telemetry
from tests.service.log_storage.fake_objects import FakeObjects
from tests.service.web.world import World, event, lines, log, make_world

NO_ANSWER = "the log storage does not answer"


@pytest.fixture
def objects() -> FakeObjects:
    return FakeObjects()


@pytest.fixture
def world(tmp_path: Path, objects: FakeObjects) -> Iterator[World]:
    made = make_world(tmp_path)
    made.store.log_bodies = ObjectLogs(objects, Telemetry())
    body = lines(event(logs=[log("ModuleNotFoundError: flash_attn"), log("second rank", 1)]))
    answer = made.client().post("/api/v1/events", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert answer.status_code == 200
    yield made
    made.store.close()


ADDRESSES = ("/failures/1", "/failures/1/logs/1/0/lines", "/failures/1/logs/1/1/lines?line=1&q=x")


def test_pages_show_logs_of_the_storage(world: World, objects: FakeObjects) -> None:
    assert len(objects.content) == 1
    client = world.client()
    assert "second rank" in client.get("/failures/1/logs/1/1/lines").text
    assert client.get("/failures/1/logs/1/1").text == "second rank"
    assert client.get("/api/v1/failures/1").json()["logs"][0]["streams"][1]["characters"] == len("second rank")


@pytest.mark.parametrize("address", ADDRESSES)
def test_pages_say_that_the_storage_does_not_answer(world: World, objects: FakeObjects, address: str) -> None:
    objects.down = True
    answer = world.client().get(address)
    assert answer.status_code == 200
    assert NO_ANSWER in answer.text
    assert "hunter2xyz" not in answer.text


def test_pages_say_that_a_log_was_removed(world: World, objects: FakeObjects) -> None:
    objects.content.clear()
    for address in ADDRESSES:
        answer = world.client().get(address)
        assert answer.status_code == 200
        assert "the log is no longer in the log storage" in answer.text
    assert world.client().get("/failures/1/logs/1/0").status_code == 404


def test_the_api_and_the_download_give_the_reason(world: World, objects: FakeObjects) -> None:
    objects.down = True
    client = world.client()
    [stream] = client.get("/api/v1/failures/1").json()["logs"][0]["streams"]
    assert stream["missing"] == NO_ANSWER
    download = client.get("/failures/1/logs/1/1")
    assert (download.status_code, download.text) == (503, NO_ANSWER)
