"""Published reports do not change; later versions list the changed figures; one process publishes."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from service import weeks
from service.errors import Conflict
from service.reports.publish import ReportService
from tests.service.web.world import World, event, lines, make_world

ZONE = ZoneInfo("UTC")
MONDAY = datetime(2026, 11, 23, 7, tzinfo=UTC)
WEEK = weeks.parse("2026-W47")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = make_world(tmp_path)
    yield made
    made.store.close()


def post(world: World, *jobs: str, **changes: object) -> None:
    body = lines(*(event(job, **changes) for job in jobs))
    answer = world.client().post("/api/v1/events", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert answer.json()["accepted"] == len(jobs), answer.text


def reports(world: World) -> ReportService:
    return ReportService(world.store, ZONE, world.clock)


def test_a_published_report_never_changes_and_the_next_version_lists_the_changes(world: World) -> None:
    post(world, "1", "2")
    post(world, "3", status="succeeded", logs=[])
    world.clock.at = MONDAY
    first = reports(world).publish(WEEK)
    assert (first.version, first.figures["failed"], first.figures["finished"]) == (1, 2, 3)
    assert reports(world).publish(WEEK).version == 1
    post(world, "4")
    assert reports(world).read(WEEK) == first
    second = reports(world).publish(WEEK)
    assert second.version == 2
    assert "failed: 2 before, 3 now" in second.moved
    assert reports(world).read(WEEK, 1) == first


def test_a_week_that_is_not_over_is_not_published(world: World) -> None:
    with pytest.raises(Conflict, match="not over"):
        reports(world).publish(WEEK)
    assert reports(world).read(WEEK).version == 1


def test_one_of_many_processes_publishes_six_hours_after_the_end_of_the_week(world: World) -> None:
    post(world, "1")
    world.clock.at = MONDAY - timedelta(hours=2)
    assert reports(world).run_if_due() is None
    world.clock.at = MONDAY
    made: list[object] = []
    threads = [threading.Thread(target=lambda: made.append(reports(world).run_if_due())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([one for one in made if one is not None]) == 1
    assert reports(world).run_if_due() is None
    with world.store.unit_of_work() as work:
        assert [one.type for one in work.outbox.lease("test", limit=10, seconds=60)].count("report.published") == 1


def test_a_confirmed_verdict_is_not_counted_as_corrected(world: World) -> None:
    post(world, "1", "2", "3")
    client = world.client()
    for failure, word in ((1, {"kind": "confirm"}), (2, {"kind": "correct", "cause": "SYS.5"})):
        assert client.post(f"/api/v1/failures/{failure}/feedback", json=word).status_code == 200
    figures = client.get("/api/v1/reports/2026-W47").json()["figures"]
    assert (figures["corrected"], figures["revised"]) == (1, 0)


def test_pages_and_api_show_the_same(world: World) -> None:
    post(world, "1")
    world.clock.at = MONDAY
    client = world.client()
    report = client.get("/api/v1/reports/2026-W47").json()
    page = client.get("/reports/2026-W47").text
    assert report["figures"]["failed"] == 1
    for sentence in report["sentences"]:
        assert sentence in page
    assert client.post("/api/v1/reports/2026-W47:publish").json()["version"] == 1
    [listed] = client.get("/api/v1/reports").json()["items"]
    assert (listed["week"], listed["by"]) == ("2026-W47", "this machine")
    assert "2026-W47" in client.get("/reports").text
    assert client.get("/api/v1/reports/2026-W99").status_code == 422
    assert client.get("/api/v1/reports/2026-W46?version=3").status_code == 404
    assert client.get("/reports/2026-W46?version=99999999999999999999").status_code == 422
    assert client.get("/reports/2026-W47.md").text.startswith("# Quality report")
