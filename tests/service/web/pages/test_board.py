"""The board of groups: columns by state beside the list, with the same filters and actions."""

import re
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from service.groups.records import GroupFilter
from service.web import group_views
from service.web.pages.groups import PER_COLUMN
from tests.service.web.test_automation_pages import post, words
from tests.service.web.world import BY_WORD, OPEN, World, event, lines, log


def columns(page: str) -> dict[str, str]:
    """The text of each column by its state."""
    return {
        code: words(text)
        for code, text in re.findall(r'<section[^>]* aria-labelledby="column-(\w+)">(.*?)</section>', page, re.DOTALL)
    }


def numbers(client: TestClient) -> dict[str, int]:
    return {one["title"]: one["id"] for one in client.get("/api/v1/groups").json()["items"]}


def test_groups_stand_in_the_column_of_their_state(client: TestClient) -> None:
    odd = event("2", logs=[log("SomethingError: nobody has seen this before")])
    client.post("/api/v1/events", content=lines(event("1"), odd))
    [resolved] = [number for title, number in numbers(client).items() if "SomethingError" in title]
    client.post(f"/api/v1/groups/{resolved}/actions", json={"action": "resolve"})
    found = columns(client.get("/groups?view=board").text)
    assert list(found) == ["escalating", "regressed", "new", "ongoing", "resolved", "muted"]
    assert "flash_attn" in found["new"]
    assert "SomethingError" in found["resolved"]
    assert all("None." in found[code] for code in ("escalating", "regressed", "ongoing", "muted"))
    assert 'aria-current="page">Board</a>' in client.get("/groups?view=board").text
    assert client.get("/groups?view=other").status_code == 422


def test_filters_and_actions_stay_on_the_board(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event("1"), event("2", user="bo")))
    page = client.get("/groups?view=board&user=nobody").text
    assert all("None with these filters." in text for text in columns(page).values())
    assert '<input type="hidden" name="view" value="board">' in page
    [number] = numbers(client).values()
    page = post(client, "/groups/act", action="resolve", group=number, back="?view=board&user=bo")
    assert "flash_attn" in columns(page)["resolved"]
    assert list(columns(client.get("/groups?view=board&state=resolved").text)) == ["resolved"]


def test_a_column_shows_the_first_groups_and_links_to_all(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"Odd{number}Error" for number in range(PER_COLUMN + 1)]
    for name in names:
        monkeypatch.setitem(BY_WORD, name, replace(OPEN, fingerprint=f"1:{name}"))
    client.post("/api/v1/events", content=lines(*(event(name, logs=[log(f"{name}: never seen")]) for name in names)))
    page = client.get("/groups?view=board").text
    assert len(re.findall("data-row", page)) == PER_COLUMN
    assert '<a href="/groups?state=new">All new groups</a>' in page
    assert "All ongoing groups" not in page


@pytest.mark.parametrize(
    ("chance", "shown"),
    [(2.3e-5, "1 in 43,478"), (0.0009, "1 in 1,111"), (1e-9, "less than 1 in 1,000,000"), (0.2, "0.2")],
)
def test_the_probability_behind_an_escalation_is_readable(world: World, chance: float, shown: str) -> None:
    with world.client() as client:
        client.post("/api/v1/events", content=lines(event("1")))
    [row] = group_views.groups(world.services, GroupFilter()).items
    why = group_views.why_state(replace(row, state="escalating", recent=6, expected=0.25, chance=chance))
    assert why.endswith(f"with a probability of {shown} (escalating below 1 in 1,000)")
