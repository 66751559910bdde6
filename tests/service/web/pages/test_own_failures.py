"""What the owner of some jobs should do, above the list of their failures; a service that serves one person only."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from service.people.repository.accounts import Account
from service.web.app import create_app
from service.web.pages.failure import own_failures
from service.web.pages.failure.short_advice import advice_sentences
from tests.service.web.test_automation_pages import words
from tests.service.web.world import HERE, NOW, World, event, lines, log

STALE = "OSError: [Errno 116] Stale file handle: '/scratch/ana'"


def at(job: str, hours: float, **changes: object) -> dict[str, object]:
    ended = NOW - timedelta(hours=hours)
    times = {"started_at": (ended - timedelta(hours=1)).isoformat(), "ended_at": ended.isoformat()}
    return event(job, **times, **changes)


@pytest.fixture
def ana(world: World) -> TestClient:
    """A client of the service for ana, who owns two kinds of failures; one of them is bo's too."""
    jobs = [at("1", 30), at("2", 3), at("3", 5, logs=[log(STALE)]), at("4", 300), at("5", 2, user="bo")]
    with world.client() as client:
        assert client.post("/api/v1/events", content=lines(*jobs)).json()["accepted"] == len(jobs)
    person = Account(0, "ana", "local", "owner", users=("ana",), teams=(), created_at=NOW)
    return TestClient(create_app(replace(world.services, sole_person=person)), base_url=HERE)


def box(page: str) -> str:
    """The text above the list."""
    shown = words(page.partition('<section class="own">')[2].partition("</section>")[0])
    return re.sub(r"\s+([.,:])", r"\1", re.sub(r"\s+", " ", shown))


def test_each_problem_of_the_last_days_stands_once_with_what_to_do(ana: TestClient) -> None:
    page = ana.get("/failures").text
    shown = box(page)
    assert (
        "3 failures of your jobs in the last 7 days: 2 in your code, configuration or data, 1 by the platform." in shown
    )
    assert "2 failures of 2 jobs, last 3 h ago: 2" in shown
    assert shown.index("Do not resubmit unchanged.") < shown.index("Stale file handle")
    assert "bo" not in shown
    links = re.findall(
        r'href="(/failures\?[^"]+)"', page.partition('<section class="own">')[2].partition("</section>")[0]
    )
    for link in links:
        rows = re.findall(r'<td class="what"><a href="/failures/(\d+)', ana.get(link.replace("&amp;", "&")).text)
        assert len(rows) == (1 if "side=system" in link else 2 if "side=user" in link or "group=" in link else 3), link
    assert len(links) == 4


def test_a_job_that_succeeded_since_needs_nothing(ana: TestClient, world: World) -> None:
    with world.client() as client:
        again = at("2", 1, attempt=1, status="succeeded", logs=[], exit_code=0)
        assert client.post("/api/v1/events", content=lines(again)).json()["accepted"] == 1
    shown = box(ana.get("/failures").text)
    assert "Nothing. The job succeeded 60 min ago." in shown


def test_it_follows_the_period_and_is_left_out_for_other_filters(ana: TestClient, world: World) -> None:
    assert "4 failures of your jobs in this period" in box(ana.get("/failures?since=28d").text)
    for filtered in ("?side=user", "?since=1h", "?job=2"):
        assert 'class="own"' not in ana.get(f"/failures{filtered}").text
    with world.client() as operator:
        assert 'class="own"' not in operator.get("/failures").text


def test_more_problems_than_are_shown_are_counted(ana: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_failures, "SHOWN", 1)
    assert "And 1 more problem in the list below." in box(ana.get("/failures").text)


def test_who_is_served_alone_has_that_persons_rights_until_there_is_a_login(ana: TestClient, world: World) -> None:
    assert ana.get("/failures/5").status_code == 404, "of another user"
    assert ana.get("/groups").status_code == 403
    assert ana.post("/api/v1/automation:stop").status_code == 403
    assert "Groups" not in words(ana.get("/failures").text.partition("</nav>")[0])
    world.token("read")
    assert ana.get("/api/v1/failures").status_code == 401


def test_nodes_are_named_without_links_to_pages_that_an_owner_may_not_open(ana: TestClient, world: World) -> None:
    [row, *_] = ana.get("/api/v1/failures?job=3").json()["items"]
    page = ana.get(f"/failures/{row['id']}").text
    assert "gpu018" in page.partition("<h2>Facts</h2>")[2]
    assert 'href="/nodes/' not in page
    with world.client() as operator:
        assert 'href="/nodes/orion/gpu018"' in operator.get(f"/failures/{row['id']}").text


@pytest.mark.parametrize(
    ("decision", "text", "expected"),
    [
        ("Resubmit now", "Resubmit without gpu-7.example.", ("Resubmit now without gpu-7.example", "")),
        ("Resubmit now", "Resubmit after a pause, from step 7.", ("Resubmit now, from step 7", "")),
        ("Resubmit after a pause", "Resubmit after a pause.", ("Resubmit after a pause", "")),
        ("Resubmit after a pause", "Resubmit after a pause, from step 7.", ("Resubmit after a pause, from step 7", "")),
        (
            "Resubmit after a pause",
            "Resubmit on other nodes. It helped.",
            ("Resubmit after a pause on other nodes", "It helped."),
        ),
        ("Do not resubmit unchanged", "Change the code.", ("Do not resubmit unchanged", "Change the code.")),
        ("Resubmit now", "", ("Resubmit now", "")),
    ],
)
def test_decision_and_likeliest_mitigation_are_one_sentence_if_both_resubmit(
    decision: str, text: str, expected: tuple[str, str]
) -> None:
    assert advice_sentences(decision, text) == expected
