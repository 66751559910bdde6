"""The model's page and call: every version that spoke, and which one speaks now."""

import json
import re
from dataclasses import replace

from fastapi.testclient import TestClient

from service.web.app import create_app
from tests.flows.crashes import model_dir
from tests.labs.need import missing
from tests.service.web.test_automation_pages import words
from tests.service.web.world import World, by_hand, event, lines

HOSTILE = "<script>alert(1)</script>{{ 7*7 }}\u202e"


def test_every_model_that_gave_verdicts_is_listed_with_its_figures(client: TestClient, world: World) -> None:
    client.post("/api/v1/events", content=lines(*(event(str(n)) for n in range(3))))
    client.post("/api/v1/failures/1/feedback", json={"kind": "correct", "cause": "SYS.5"})
    [model, people] = client.get("/api/v1/models").json()["items"]
    assert (model["model"], model["verdicts"], model["in_use"], model["person"]) == ("by hand 1", 3, True, False)
    assert model["first_at"] == model["last_at"]
    assert (people["verdicts"], people["in_use"], people["person"]) == (1, False, True)
    page = words(client.get("/model").text)
    assert "by hand 1 active by hand 1 3 verdicts" in page
    assert "people (corrected or confirmed) 1 verdict" in page
    newer = create_app(replace(world.services, model=by_hand(HOSTILE, "by hand 2")))
    with TestClient(newer, base_url="http://127.0.0.1:8080") as later:
        items = later.get("/api/v1/models").json()["items"]
        assert [(one["verdicts"], one["in_use"]) for one in items] == [(0, True), (3, False), (1, False)]
        page = later.get("/model").text
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert "not yet" in page


def test_without_a_model_the_page_says_so(world: World) -> None:
    bare = create_app(replace(world.services, model=None))
    with TestClient(bare, base_url="http://127.0.0.1:8080") as client:
        assert client.get("/api/v1/models").json()["items"] == []
        assert "No model is loaded, and no verdict has been stored." in client.get("/model").text


def test_the_head_says_how_sure_the_model_is_and_where_it_is_weak(world: World) -> None:
    manifest = {"held_out": {"side": 0.9508, "cause": 0.9118, "answered": 0.9019}}
    sure = create_app(replace(world.services, model=by_hand("text 2", "rules 1", manifest)))
    with TestClient(sure, base_url="http://127.0.0.1:8080") as client:
        page = client.get("/model").text
    head = words(page.partition("<h1>")[2].partition("<section>")[0]).replace("\u00a0", " ").replace(" ,", ",")
    assert "the side is right in 95.1 %, the cause in 91.2 %; 90.2 % of the verdicts are decided" in head
    assert "On this site no verdict was audited yet" in head
    table = page.partition("By cause, weakest first")[2]
    found = re.findall(r'data-label="cause right[^>]*>([\d.]+)\u00a0% [^(]*\((\d+)\u00a0% to (\d+)\u00a0%\)', table)
    assert len(found) > 10
    shares = [float(share) for share, *_ in found]
    assert shares == sorted(shares)
    assert all(int(low) - 1 <= float(share) <= int(high) + 1 and low != high for share, low, high in found)
    matrix = words(page.partition("Confusion matrix of sides")[2].partition("</section>")[0])
    assert "these shares are lower than the one at the top" in matrix, "it has another number of right sides"


def test_a_model_without_held_out_figures_claims_nothing(client: TestClient) -> None:
    assert "held out of its training, the side is right" not in client.get("/model").text


def test_the_stored_figures_are_those_of_the_model_that_is_trained_on_the_packaged_data(world: World) -> None:
    manifest = model_dir() / "manifest.json"
    if not manifest.exists():
        missing("no trained model (make install)")
    trained = by_hand("text 2", "rules 1", json.loads(manifest.read_text()))
    for model, sentence in [
        (trained, "This is the active model."),
        (by_hand("text 2", "rules 1", {"data": "0"}), "The active model was trained on other data"),
    ]:
        with TestClient(create_app(replace(world.services, model=model)), base_url="http://127.0.0.1:8080") as client:
            page = words(client.get("/model").text)
        assert sentence in page, "after a change of the training data: CONTRIBUTING, `faultline evaluate --json`"
