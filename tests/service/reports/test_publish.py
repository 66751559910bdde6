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
from service.statistics.records import Scope
from service.web.sessions import FORM_COOKIE
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


def test_the_report_of_a_team_is_published_with_its_own_versions(world: World) -> None:
    post(world, "1")
    post(world, "2", "3", team="speech")
    world.clock.at = MONDAY
    client = world.client()
    address = "/api/v1/reports/2026-W47"
    assert client.post(f"{address}:publish").json()["figures"]["failed"] == 3
    first = client.post(f"{address}:publish?team=speech").json()
    assert (first["version"], first["figures"]["failed"], first["scope"]) == (1, 2, {"team": "speech"})
    assert client.post(f"{address}:publish?team=speech").json() == first, "nothing changed"
    post(world, "4", team="speech")
    assert client.get(f"{address}?team=speech").json() == first
    second = client.post(f"{address}:publish?team=speech").json()
    assert (second["version"], second["figures"]["failed"]) == (2, 3)
    assert "failed: 2 before, 3 now" in second["moved"]
    assert client.get(f"{address}?team=speech&version=1").json() == first
    assert client.get(address).json()["version"] == 1, "that of all jobs"
    missing = client.get(f"{address}?team=vision&version=1")
    assert missing.status_code == 404
    assert "no published version 1 of team vision" in missing.json()["detail"]
    assert client.post(f"{address}:publish?team=nobody").status_code == 422
    with world.store.unit_of_work() as work:
        sent = [one.type for one in work.outbox.lease("test", limit=10, seconds=60)]
        published = [one.after for one in work.audit_log.page(limit=10).items if one.what == "report.published"]
    assert sent.count("report.published") == 1, "endpoints are told of the report of all jobs"
    assert published == [{"version": 2, "team": "speech"}, {"version": 1, "team": "speech"}, {"version": 1}]


def test_lists_of_api_and_page_name_the_reports_of_scopes(world: World) -> None:
    post(world, "1")
    world.clock.at = MONDAY
    reports(world).publish(WEEK)
    reports(world).publish(WEEK, "ana", Scope("orion"))
    client = world.client()
    lists = {
        query: client.get(f"/api/v1/reports{query}").json()["items"] for query in ("", "?cluster=orion", "?team=vision")
    }
    assert [(one["by"], one["cluster"], one["team"]) for one in lists[""]] == [("the service", None, None)]
    assert [(one["by"], one["cluster"], one["team"]) for one in lists["?cluster=orion"]] == [("ana", "orion", None)]
    assert lists["?team=vision"] == []
    assert client.get("/api/v1/reports?scopes=true").json()["items"] == lists["?cluster=orion"]
    assert client.get("/api/v1/reports?scopes=true&cursor=x").status_code == 422
    page = client.get("/reports").text
    assert "Published for a cluster or team" in page
    assert '<a href="/reports/2026-W47?cluster=orion&amp;version=1">2026-W47</a>' in page
    shown = client.get("/reports/2026-W47?cluster=orion").text
    assert "versions: " in shown
    assert '<a href="/reports/2026-W47?cluster=orion&amp;version=1">1</a>' in shown
    assert "not published: from current data" in client.get("/reports/2026-W47?team=vision").text


def test_the_page_publishes_what_it_shows(world: World) -> None:
    post(world, "1")
    world.clock.at = MONDAY
    client = world.client()
    assert '<input type="hidden" name="cluster" value="orion">' in client.get("/reports/2026-W47?cluster=orion").text
    form = {"form_token": client.cookies[FORM_COOKIE], "cluster": "orion", "team": ""}
    answer = client.post("/reports/2026-W47/publish", data=form, headers={"Origin": "http://127.0.0.1:8080"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/reports/2026-W47?cluster=orion")
    with world.store.reading() as reading:
        assert reading.reports.latest("2026-W47") is None
        assert reading.reports.latest("2026-W47", Scope("orion")) is not None


def test_the_actions_of_the_week_before_are_those_of_the_published_report_of_the_scope(world: World) -> None:
    world.clock.at = MONDAY + timedelta(weeks=1)
    post(world, "1", "2")
    scope = Scope("orion")
    stored = reports(world).publish(WEEK, scope=scope)
    assert stored.todo
    with world.store.unit_of_work() as work:
        changed = {**stored.to_wire(), "todo": []}
        assert work.reports.add("2026-W47", 2, "ana", changed, scope)
    assert reports(world).current(weeks.parse("2026-W48"), scope).previous == ()


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


def test_a_week_that_a_person_published_early_is_published_again_with_its_late_events(world: World) -> None:
    post(world, "1", "2")
    world.clock.at = MONDAY - timedelta(hours=6, minutes=30)
    assert reports(world).publish(WEEK, "ana").figures["failed"] == 2
    world.clock.at = MONDAY - timedelta(hours=4)
    post(world, "3")
    world.clock.at = MONDAY
    made = reports(world).run_if_due()
    assert made is not None
    assert (made.version, made.figures["failed"]) == (2, 3)
    assert "failed: 2 before, 3 now" in made.moved
    assert reports(world).run_if_due() is None
    assert reports(world).read(WEEK).version == 2


def test_a_week_that_a_person_published_after_late_events_is_not_published_again(world: World) -> None:
    post(world, "1")
    world.clock.at = MONDAY
    reports(world).publish(WEEK, "ana")
    post(world, "2")
    assert reports(world).run_if_due() is None
    assert reports(world).read(WEEK).version == 1


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


def test_weeks_that_ended_while_the_service_was_down_are_published_later(world: World) -> None:
    post(world, "1")
    world.clock.at = MONDAY
    assert reports(world).run_if_due() is not None
    post(world, "2", ended_at=(MONDAY + timedelta(days=2)).isoformat())
    world.clock.at = MONDAY + timedelta(weeks=3)
    made = reports(world).run_if_due()
    assert made is not None
    assert made.week == "2026-W50"
    with world.store.reading() as reading:
        stored = [reading.reports.latest(f"2026-W{number}", Scope()) for number in (46, 47, 48, 49, 50)]
    assert [one is not None for one in stored] == [False, True, True, True, True]
    assert stored[2] is not None
    assert stored[2].body["figures"]["failed"] == 1
    assert reports(world).run_if_due() is None
