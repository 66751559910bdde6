"""The report of a cluster or team has the figures of a fleet that has no other jobs."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from service import weeks
from service.errors import InvalidInput
from service.reports import html, markdown, summary
from service.reports.build import title
from service.reports.document import Report
from service.reports.publish import ReportService
from service.statistics.records import Scope
from tests.service.web.world import NOW, World, event, lines, log, make_world

WEEK = weeks.parse("2026-W47")
XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus."
STALE = "OSError: Stale file handle"
OF_CODES = {
    "causes": 1,
    "categories": 1,
    "symptoms": 1,
    "interruptions": 2,
}  # section: column of the count
CLUSTER, TEAM = Scope("vega"), Scope(team="speech")


def fleet() -> list[dict[str, Any]]:
    """Five weeks of two teams on two clusters, with failures of each side, retries and jobs that succeed."""
    made = []
    for number in range(160):
        ended = NOW - timedelta(hours=5.3 * number + 1)
        texts = {0: None, 1: XID, 2: STALE, 3: "ModuleNotFoundError: No module named 'a'"}
        text = texts[number * 7 % 4]
        made.append(
            event(
                f"j{number // 2}" if number % 5 == 0 else f"k{number}",
                attempt=number,
                cluster="vega" if number % 3 == 0 else "orion",
                team="speech" if number % 2 else "vision",
                user=("ana", "bo", "cy")[number % 3],
                gpus=8 * (1 + number % 4),
                nodes=[f"gpu{number % 6:03d}"],
                started_at=(ended - timedelta(hours=2)).isoformat(),
                ended_at=ended.isoformat(),
                **({"status": "succeeded", "logs": []} if text is None else {"logs": [log(text)]}),
            )
        )
    return made


def filled(folder: Path, events: list[dict[str, Any]]) -> World:
    folder.mkdir()
    made = make_world(folder)
    with made.client() as client:
        assert client.post("/api/v1/events", content=lines(*events)).json()["accepted"] == len(events)
    return made


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = filled(tmp_path_factory.mktemp("scope") / "all", fleet())
    yield made
    made.store.close()


def report(world: World, scope: Scope = Scope()) -> Report:  # noqa: B008 - frozen
    return ReportService(world.store, world.services.zone, world.clock).read(WEEK, scope=scope)


def rows(report: Report) -> dict[str, list[list[str]]]:
    """The tables without the dates on which groups were first seen: these are of all jobs in any report."""
    return {
        section.key: [
            [cell.text for cell, name in zip(row, section.table.columns, strict=True) if name != "first seen"]
            for row in section.table.rows
        ]
        for section in report.sections
        if section.table is not None
    }


@pytest.mark.parametrize(("scope", "field"), [(CLUSTER, "cluster"), (TEAM, "team")])
def test_the_figures_are_those_of_a_fleet_without_other_jobs(
    world: World, tmp_path: Path, scope: Scope, field: str
) -> None:
    alone = filled(tmp_path / field, [one for one in fleet() if one[field] == getattr(scope, field)])
    limited, expected = report(world, scope), report(alone)
    alone.store.close()
    silent = {"silent_hours"} if field == "team" else set()  # the hours in which the whole fleet is silent
    assert {**limited.figures, **dict.fromkeys(silent)} == {**expected.figures, **dict.fromkeys(silent)}
    assert limited.sentences == expected.sentences
    assert limited.chart == expected.chart
    assert [(one.title, one.gain, one.target) for one in limited.todo] == [
        (one.title, one.gain, one.target) for one in expected.todo
    ]
    assert rows(limited) == rows(expected)
    assert limited.figures["failed"] < report(world).figures["failed"]  # type: ignore[operator]


def test_every_form_names_the_scope_and_links_keep_it(world: World) -> None:
    both = Scope("vega", "speech")
    made = report(world, both)
    assert made.title == title("2026-W47", both) == "Quality report of cluster vega, team speech, week 2026-W47"
    for text in (html.render(made), markdown.render(made), summary.summary(made)[0], summary.mail(made).decode()):
        assert made.title in text
    assert made.todo
    for todo in made.todo:
        assert todo.href is not None
        assert "/nodes/" in todo.href or "cluster=vega&team=speech" in todo.href


@pytest.mark.parametrize("scope", [Scope(), Scope("vega", "speech")])
def test_the_link_of_a_code_opens_the_failures_that_the_report_counts(world: World, scope: Scope) -> None:
    client, followed = world.client(), 0
    for section in report(world, scope).sections:
        for row in section.table.rows if section.table is not None and section.key in OF_CODES else ():
            if row[0].href is not None:
                listed = client.get(f"/api/v1{row[0].href}&limit=500").json()["items"]
                assert row[OF_CODES[section.key]].text == str(len(listed)), (section.key, row[0])
                followed += 1
    assert followed >= 3


def test_figures_of_goodput_open_the_page_of_the_same_jobs(world: World) -> None:
    [section] = [one for one in report(world, CLUSTER).sections if one.key == "goodput"]
    assert section.table is not None
    for row in section.table.rows:
        address, _, figure = str(row[0].href).partition("#")
        page = world.client().get(address).text
        assert f'id="{figure}"' in page
        assert f"of {section.table.rows[0][1].text} GPU-hours delivered" in page


def test_the_actions_of_the_week_before_are_those_of_the_scope(world: World) -> None:
    before = ReportService(world.store, world.services.zone, world.clock).current(WEEK.earlier(1), TEAM)
    assert [one.title for one in report(world, TEAM).previous] == [one.title for one in before.todo if one.target]


def test_page_and_api_are_limited_and_say_so(world: World) -> None:
    client = world.client()
    wire = client.get("/api/v1/reports/2026-W47?cluster=vega&team=").json()
    assert wire["scope"] == {"cluster": "vega"}
    page = client.get("/reports/2026-W47?cluster=vega").text
    assert "Quality report of cluster vega" in page
    for sentence in wire["sentences"]:
        assert sentence in page
    assert "/goodput?cluster=vega&amp;since=2026-11-1" in page, "the goodput of this week is one click away"
    assert "11-16 to 11-22" in client.get("/reports").text
    named = client.get("/reports/2026-W47.md?cluster=vega&team=speech").headers["content-disposition"]
    assert "faultline-vega-speech-2026-W47.md" in named


@pytest.mark.parametrize("query", ["cluster=nowhere", "team=nobody", "cluster=vega&team=nobody"])
def test_a_scope_without_jobs_is_refused(world: World, query: str) -> None:
    client = world.client()
    answer = client.get(f"/api/v1/reports/2026-W47?{query}")
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert error["field"] == ("team" if "team" in query else "cluster")
    page = client.get(f"/reports/2026-W47?{query}")
    assert page.status_code == 422
    assert "whose jobs ended here" in page.text


def test_a_team_without_failures_has_a_report(world: World) -> None:
    ended = event("fine", team="calm", status="succeeded", logs=[])
    assert world.client().post("/api/v1/events", content=lines(ended)).json()["accepted"] == 1
    assert report(world, replace(TEAM, team="calm")).figures["finished"] == 1
    with pytest.raises(InvalidInput, match="a team whose jobs ended here, not 'nobody'"):
        report(world, replace(TEAM, team="nobody"))
