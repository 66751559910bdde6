"""The page and the API of drift monitoring."""

from fastapi.testclient import TestClient

from service.drift.records import DriftReport
from service.drift.watch import DriftWatch
from service.telemetry import Telemetry
from tests.service.drift.samples import stored
from tests.service.web.world import World


def test_the_page_and_the_api_show_the_newest_report(client: TestClient, world: World) -> None:
    assert client.get("/api/v1/drift").json() == {"report": None}
    assert "No comparison yet" in client.get("/model/drift").text
    stored(world.store, world.clock)
    DriftWatch(world.store, world.clock, Telemetry())()
    answered = DriftReport.model_validate(client.get("/api/v1/drift").json()["report"])
    page = client.get("/model/drift").text
    assert "Changed: unknown words grew, lines without a signature grew" in page
    assert "NCCL 2.22.3" in page
    assert answered.clusters[0].changed
    for one in answered.clusters[0].changed:
        assert f"/failures/{one.examples[0].failure}" in page
