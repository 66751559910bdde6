"""What to label next: expensive, doubtful and new groups first."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.feedback import label_queue
from tests.service.web.world import World, event, lines, log, make_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = make_world(tmp_path)
    yield made
    made.store.close()


def send(world: World, *events: dict[str, object]) -> None:
    with world.client() as client:
        assert client.post("/api/v1/events", content=lines(*events)).status_code == 200


def titles(world: World) -> list[str]:
    with world.client() as client:
        return [one["title"] for one in client.get("/api/v1/label-queue").json()["items"]]


def test_doubtful_groups_that_lose_much_come_first_and_labelled_ones_go(world: World) -> None:
    send(
        world,
        event("sure", gpus=64),
        event("cheap", gpus=1, logs=[log("Xid 79, GPU has fallen off the bus", node="gpu018")]),
        event("odd", gpus=64, nodes=["gpu090"], logs=[log("SomethingError: never seen", node="gpu090")]),
    )
    with world.client() as client:
        found = client.get("/api/v1/label-queue").json()
        first = found["items"][0]
        assert (first["abstained"], first["doubt"], first["novelty"]) == (True, pytest.approx(0.59), 1.0)
        assert first["value"] == pytest.approx(first["gpu_hours"] * 0.59)
        assert [one["value"] for one in found["items"]] == sorted(
            (one["value"] for one in found["items"]), reverse=True
        )
        assert (found["labelled"], found["wanted"]) == (0, 10)
        label = {"kind": "correct", "cause": "SYS.5"}
        assert client.post(f"/api/v1/groups/{first['group']}/feedback", json=label).status_code == 200
        found = client.get("/api/v1/label-queue").json()
    assert first["group"] not in [one["group"] for one in found["items"]]
    assert found["labelled"] == 1


def test_new_groups_are_suggested_though_labelled_ones_lost_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_queue, "READ", 2)
    send(world, event("dear", gpus=64), event("dearer", gpus=128, logs=[log("Xid 79, GPU has fallen off the bus")]))
    with world.client() as client:
        for one in client.get("/api/v1/label-queue").json()["items"]:
            label = {"kind": "correct", "cause": "SYS.5"}
            assert client.post(f"/api/v1/groups/{one['group']}/feedback", json=label).status_code == 200
    assert titles(world) == []
    send(world, event("new", gpus=1, logs=[log("SomethingError: nobody has seen this before")]))
    assert titles(world) == ["SomethingError: nobody has seen this before"]


def test_a_group_of_undeterminable_cause_leaves_the_queue(world: World) -> None:
    send(world, event("odd", logs=[log("SomethingError: nobody has seen this before")]))
    with world.client() as client:
        [item] = client.get("/api/v1/label-queue").json()["items"]
        assert client.post(f"/api/v1/failures/{item['failure']}/feedback", json={"kind": "unsure"}).status_code == 200
    assert titles(world) == []


def test_a_cause_with_labels_is_less_new(world: World) -> None:
    send(world, *(event(f"sure{n}", user=f"user{n}") for n in range(2)), event("xid", logs=[log("Xid 79")]))
    with world.client() as client:
        before = {one["cause"]: one["novelty"] for one in client.get("/api/v1/label-queue").json()["items"]}
        number = client.get("/api/v1/failures?side=hardware").json()["items"][0]["id"]
        client.post(f"/api/v1/failures/{number}/feedback", json={"kind": "correct", "cause": "USER.1"})
        after = {one["cause"]: one["novelty"] for one in client.get("/api/v1/label-queue").json()["items"]}
    assert before["USER.1"] == 1.0
    assert after["USER.1"] == pytest.approx(0.5**0.5)
    assert "HW.GPU.1" not in after, "a person judged its newest failure"


def test_an_owner_s_cause_is_a_vote_and_no_label(world: World) -> None:
    send(world, event("mine"))
    with world.client() as client:
        vote = {"kind": "contest", "cause": "SYS.5", "note": "the storage was down"}
        assert client.post("/api/v1/failures/1/feedback", json=vote).status_code == 200
        found = client.get("/api/v1/failures/1/feedback").json()
        assert found["items"][0]["labels"]["cause"] == "SYS.5"
        assert (found["label"]["labels"]["cause"], found["label"]["contested"]) == (None, True)
        assert client.get("/api/v1/failures").json()["items"][0]["cause"] == "USER.1"
        assert client.get("/api/v1/labels").text == ""
