"""A site with the data of regular use, for the tests of all pages."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.flows.test_pages import stock
from tests.service.web.live import serving
from tests.service.web.stored_layers import add_layer
from tests.service.web.world import World, make_world


def judged(world: World) -> None:
    """Create the data of regular use: a merge, a mute, feedback on verdicts, an audit sample, a saved view."""
    with world.client() as client:
        groups = [group["id"] for group in client.get("/api/v1/groups").json()["items"]]
        client.post(f"/api/v1/groups/{groups[0]}/actions", json={"action": "merge", "groups": groups[-1:]})
        client.post(f"/api/v1/groups/{groups[1]}/actions", json={"action": "mute", "failures": 9})
        client.post(f"/api/v1/groups/{groups[0]}/actions", json={"action": "comment", "text": "seen before"})
        client.put("/api/v1/views", json={"name": "mine", "query": "side=user"})
        failures = [row["id"] for row in client.get("/api/v1/failures").json()["items"]]
        client.post(f"/api/v1/failures/{failures[0]}/feedback", json={"kind": "contest", "note": "no"})
        client.post(f"/api/v1/failures/{failures[1]}/feedback", json={"kind": "correct", "cause": "SYS.5"})
    add_layer(world)
    world.clock.at += timedelta(days=7)
    world.services.feedback.draw()
    world.clock.at -= timedelta(days=7)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    world = make_world(tmp_path_factory.mktemp("site"))
    stock(world)
    judged(world)
    with serving(world.app) as address:
        yield address
    world.store.close()
