"""The registry of site layers: the gate's answer in words, promotion, refusal, rollback."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from service.learning.records import GateResult
from service.web.sessions import FORM_COOKIE
from tests.service.web.stored_layers import LAYER, add_layer
from tests.service.web.world import World, make_world

API = "/api/v1/site-layers"
OTHER = "site-111111111111"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = make_world(tmp_path, host="0.0.0.0")
    yield made
    made.store.close()


def client(world: World, *scopes: str, name: str = "ben", teams: tuple[str, ...] = ()) -> TestClient:
    return world.client(world.token(*scopes, name=name, teams=teams))


def entries(world: World) -> list[str]:
    with world.store.reading() as reading:
        return [one.what for one in reading.audit_log.page(limit=50).items if one.what.startswith("model.")]


def test_a_layer_is_shown_with_the_reasons_of_the_gate_and_its_shadow_run(world: World) -> None:
    add_layer(world)
    reader = client(world, "read")
    [item] = reader.get(API).json()["items"]
    assert (item["id"], item["decision"], item["in_use"], item["labellers"]) == (LAYER, "ask", False, {"ana": 12})
    detail = reader.get(f"{API}/{LAYER}").json()
    assert detail["shadow_run"]["examples"][0]["failure"] == 1
    page = reader.get(f"/model/layers/{LAYER}").text
    assert "a second person has to agree" in page
    assert "2 of 50 stored failures would get a different verdict" in page
    assert "flexnet: no seat left" in page
    assert "Side right in 90.0\u00a0% before, 95.0\u00a0% after: +5.0 points (95 % interval +0.0 to +10.0)." in page
    assert "Promote" not in page
    assert LAYER in reader.get("/model/layers").text
    assert reader.get(f"{API}/{OTHER}").status_code == 404


def test_a_layer_of_another_packaged_model_is_not_shown_as_in_use(world: World) -> None:
    add_layer(world, decision="promote", base="before the upgrade")
    with world.store.unit_of_work() as work:
        work.site_layers.promote(LAYER, "ana", "before the packaged model was replaced")
    admin = client(world, "admin")
    [item] = admin.get(API).json()["items"]
    assert (item["in_use"], "run faultline retrain" in item["obstacle"]) == (False, True)
    page = admin.get(f"/model/layers/{LAYER}").text
    assert "This layer is in use" not in page
    assert "it was fitted on another packaged model" in page


def test_labels_to_review_are_shown_with_their_failures(world: World) -> None:
    add_layer(world, left_out=["faultline-west-2-17"], doubtful=["faultline-orion-4", "an-imported-case"])
    reader = client(world, "read")
    shown = reader.get(f"{API}/{LAYER}").json()["review"]
    assert [(one["failure"], one["reason"]) for one in shown] == [
        (17, "contradicts its group, not learned"),
        (4, "unlikely by the other labels"),
        (None, "unlikely by the other labels"),
    ]
    page = reader.get(f"/model/layers/{LAYER}").text
    assert '<a href="/failures/17">failure 17</a>: contradicts its group' in page
    assert "an-imported-case: unlikely by the other labels" in page


def test_a_token_of_one_team_neither_reads_nor_changes_the_model_of_all(world: World) -> None:
    add_layer(world, decision="promote", labellers={"ana": 2})
    assert client(world, "admin").post(f"{API}/{LAYER}:promote").status_code == 200
    bound = client(world, "read", "act", name="vision", teams=("vision",))
    assert bound.get(f"{API}/{LAYER}").status_code == 403
    assert bound.post(f"{API}:rollback").status_code == 403


def test_a_second_person_promotes_and_a_rollback_returns(world: World) -> None:
    add_layer(world)
    refused = client(world, "admin", name="ana").post(f"{API}/{LAYER}:promote")
    assert refused.status_code == 409
    assert "you gave nearly all of its labels" in refused.json()["detail"]
    second = client(world, "admin")
    assert second.post(f"{API}/{LAYER}:promote", json={"reason": "looked at all"}).json()["layer"]["in_use"]
    change = second.get(API).json()["promotions"][0]
    assert (change["layer"], change["who"], change["reason"]) == (LAYER, "ben", "looked at all")
    operator = client(world, "act", name="ola")
    assert operator.post(f"{API}:rollback").json() == {"before": LAYER, "after": "packaged"}
    assert entries(world) == ["model.rolled_back", "model.promoted"]


def test_without_an_earlier_model_there_is_no_rollback(world: World) -> None:
    assert client(world, "act").post(f"{API}:rollback").status_code == 409


def test_a_refused_candidate_stays_out_of_use(world: World) -> None:
    add_layer(world)
    admin = client(world, "admin")
    answer = admin.post(f"{API}/{LAYER}:refuse", json={"reason": "the labels are of a test"}).json()
    assert answer["layer"]["decision"] == "refuse"
    assert answer["layer"]["reasons"][0] == "refused by ben: the labels are of a test"
    assert admin.post(f"{API}/{LAYER}:promote").status_code == 409
    assert entries(world) == ["model.refused"]
    add_layer(world, OTHER, "promote", labellers={"ana": 2})
    assert admin.post(f"{API}/{OTHER}:promote").status_code == 200
    assert admin.post(f"{API}/{OTHER}:refuse").status_code == 409, "it is in use"


def test_a_form_does_not_replace_what_its_reader_did_not_see(world: World) -> None:
    """Two people decide at once: the second one looks at the page again."""
    for layer in (LAYER, OTHER):
        add_layer(world, layer)
    with client(world, "admin", "read") as admin, client(world, "admin", "read", name="cem") as another:
        for one in (admin, another):
            one.cookies.set(FORM_COOKIE, "form")
        seen = {LAYER: sent_by(another, f"/model/layers/{LAYER}"), OTHER: sent_by(another, f"/model/layers/{OTHER}")}
        assert admin.post(f"/model/layers/{LAYER}/promote", data=seen[LAYER]).status_code == 303
        assert another.post(f"/model/layers/{OTHER}/promote", data=seen[OTHER]).status_code == 409
        rollback = sent_by(another, f"/model/layers/{LAYER}")
        assert sent_by(another, "/model/layers")["after"] == rollback["after"]
        assert admin.post("/model/rollback", data=rollback).status_code == 303
        assert another.post("/model/rollback", data=rollback).status_code == 409
    assert entries(world) == ["model.rolled_back", "model.promoted"]


def sent_by(reader: TestClient, page: str) -> dict[str, str]:
    """The hidden fields of the forms of a page."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', reader.get(page).text))


def test_the_forms_of_the_page_do_the_same(world: World) -> None:
    add_layer(world)
    with client(world, "admin", "read") as admin:
        admin.cookies.set(FORM_COOKIE, "form")
        page = admin.get(f"/model/layers/{LAYER}").text
        assert "Promote" in page
        done = admin.post(f"/model/layers/{LAYER}/promote", data={"form_token": "form", "reason": "fine"})
        assert done.headers["location"] == f"/model/layers/{LAYER}?notice=layer_promoted"
        assert "This layer is in use" in admin.get(done.headers["location"]).text
        done = admin.post("/model/rollback", data={"form_token": "form"})
        assert "Rolled back" in admin.get(done.headers["location"]).text
        assert admin.post(f"/model/layers/{LAYER}/refuse", data={"form_token": "form"}).status_code == 303
    with client(world, "act", "read", name="ola") as operator:
        operator.cookies.set(FORM_COOKIE, "form")
        assert operator.post(f"/model/layers/{LAYER}/promote", data={"form_token": "form"}).status_code == 403


def test_a_layer_that_cannot_be_read_is_shown_with_the_reason(world: World) -> None:
    gate = GateResult("promote", ("better",))
    with world.store.unit_of_work() as work:
        work.site_layers.add(LAYER, '{"format": "site-layer/99"}', "the command line", gate)
    add_layer(world, OTHER)
    admin = client(world, "admin", "read")
    items = {item["id"]: item for item in admin.get(API).json()["items"]}
    assert "can't be read" in items[LAYER]["obstacle"]
    assert admin.get(f"{API}/{LAYER}").status_code == 200
    assert "can&#39;t be read" in admin.get(f"/model/layers/{LAYER}").text
    answer = admin.post(f"{API}/{LAYER}:promote")
    assert answer.status_code == 409
    assert "can't be read" in answer.json()["detail"]
