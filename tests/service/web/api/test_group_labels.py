"""The labels of a group: who gave which when; any of them is withdrawn, and later ones stay."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.db.session import UnitOfWork
from service.feedback import withdrawal
from service.feedback.records import FeedbackInput, Labels
from tests.service.web.test_automation_pages import post, words
from tests.service.web.test_undo import group_of, verdicts
from tests.service.web.world import World, event, lines, make_world

MACHINE = ("USER.1", "machine")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


@pytest.fixture
def client(world: World) -> TestClient:
    """A person who works at the service's machine."""
    return world.client()


def failed(client: TestClient, *jobs: str) -> int:
    """Store failures of these jobs; the number of their group."""
    client.post("/api/v1/events", content=lines(*(event(job) for job in jobs)))
    return int(group_of(client, "flash_attn")["id"])


def label(world: World, group: int, who: str, cause: str | None) -> None:
    """Label the group a minute later; without a cause, confirm its verdicts."""
    world.clock.at += timedelta(minutes=1)
    given = FeedbackInput("confirm") if cause is None else FeedbackInput("correct", Labels(cause=cause))
    assert world.services.feedback.add_to_group(group, who, given)


def labels(client: TestClient, group: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/v1/groups/{group}/labels").json()["items"]
    return found


def withdraw(client: TestClient, group: int, who: str) -> tuple[int, int]:
    """Withdraw the label of a person: failures whose verdict is the one before, and others."""
    [number] = [one["number"] for one in labels(client, group) if one["who"] == who]
    answer = client.post(f"/api/v1/groups/{group}/labels/{number}:withdraw")
    assert answer.status_code == 200, answer.text
    return answer.json()["failures"], answer.json()["unchanged"]


def disputed(client: TestClient) -> int:
    return sum(one["label"]["disputed"] for one in client.get("/api/v1/feedback").json()["items"])


def test_an_earlier_label_is_withdrawn_hours_later_by_another_person_and_the_later_one_stays(
    client: TestClient, world: World
) -> None:
    group = failed(client, "1", "2")
    label(world, group, "ana", "SYS.5")
    label(world, group, "bob", "USER.4")
    assert [(one["who"], one["cause"], one["failures"]) for one in labels(client, group)] == [
        ("bob", "USER.4", 2),
        ("ana", "SYS.5", 2),
    ]
    assert disputed(client) == 2
    labelled_at = group_of(client, "flash_attn")["labelled_at"]
    world.clock.at += timedelta(hours=30)
    assert withdraw(client, group, "ana") == (0, 2)
    assert set(verdicts(client).values()) == {("USER.4", "person")}
    assert disputed(client) == 0
    found = group_of(client, "flash_attn")
    assert (found["cause"], found["labelled_at"]) == ("USER.4", labelled_at)
    assert [one["who"] for one in labels(client, group)] == ["bob"]


def test_failures_that_only_the_earlier_label_reached_have_their_verdict_again(
    client: TestClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = failed(client, "1", "2")
    label(world, group, "ana", "SYS.5")
    failed(client, "3", "4")
    monkeypatch.setattr("service.feedback.service.MOST_AT_ONCE", 2)
    label(world, group, "bob", "USER.4")
    assert withdraw(client, group, "ana") == (2, 0)
    kept = ("USER.4", "person")
    assert verdicts(client) == {"1": MACHINE, "2": MACHINE, "3": kept, "4": kept}


@pytest.mark.parametrize("order", [("ana", "bob", "carl"), ("carl", "bob", "ana"), ("bob", "ana", "carl")])
def test_in_any_order_the_last_withdrawn_label_leaves_the_verdicts_of_the_machine(
    client: TestClient, world: World, order: tuple[str, ...]
) -> None:
    group = failed(client, "1", "2")
    causes = {"ana": "SYS.5", "bob": "USER.4", "carl": "HW.GPU.1"}
    for who, cause in causes.items():
        label(world, group, who, cause)
    left = list(causes)
    for who in order:
        withdraw(client, group, who)
        left.remove(who)
        expected = (causes[left[-1]], "person") if left else MACHINE
        assert set(verdicts(client).values()) == {expected}, who
        found = group_of(client, "flash_attn")
        assert (found["cause"], found["labelled_at"] is None) == (expected[0], not left)
    assert labels(client, group) == []
    assert client.get("/api/v1/labels").text.strip() == ""


def test_a_verdict_that_a_later_person_confirmed_stays(client: TestClient, world: World) -> None:
    group = failed(client, "1")
    label(world, group, "ana", "SYS.5")
    label(world, group, "bob", None)
    assert withdraw(client, group, "ana") == (0, 1)
    assert verdicts(client) == {"1": ("SYS.5", "person")}
    assert withdraw(client, group, "bob") == (1, 0)
    assert verdicts(client) == {"1": MACHINE}


def test_a_protected_label_stays(client: TestClient, world: World) -> None:
    group = failed(client, "1")
    label(world, group, "ana", "SYS.5")
    [number] = [one["id"] for one in client.get("/api/v1/failures").json()["items"]]
    with world.store.unit_of_work() as work:
        assert work.feedback.protect(number, golden=True)
    assert withdraw(client, group, "ana") == (0, 1)
    assert verdicts(client) == {"1": ("SYS.5", "person")}


def test_the_withdrawal_is_recorded_with_the_person_who_had_given_the_label(client: TestClient, world: World) -> None:
    group = failed(client, "1")
    label(world, group, "ana", "SYS.5")
    label(world, group, "bob", "USER.4")
    withdraw(client, group, "ana")
    notes = [one["text"] for one in client.get(f"/api/v1/groups/{group}").json()["group"]["notes"]]
    assert notes[0] == "withdrew the label SYS.5 from 0 failures, which ana had given"
    with world.store.reading() as reading:
        entries = reading.audit_log.page(limit=2).items
    assert [one.what for one in entries] == ["group.changed", "label.withdrawn"]
    assert '"who":"ana"' in str(entries[1].before).replace(" ", "").replace("'", '"')
    for number in (labels(client, group)[0]["number"] + 999, 1):
        assert client.post(f"/api/v1/groups/{group}/labels/{number}:withdraw").status_code == 404
    assert client.get("/api/v1/groups/999/labels").status_code == 404


def test_the_page_lists_the_labels_and_undoes_any(client: TestClient, world: World) -> None:
    group = failed(client, "1", "2")
    assert "<h2>Labels</h2>" not in client.get(f"/groups/{group}").text
    label(world, group, "ana", "SYS.5")
    label(world, group, "bob", "USER.4")
    [_, anas] = [one["number"] for one in labels(client, group)]
    page = client.get(f"/groups/{group}").text
    assert [page.count(f"<td>{who}</td>") for who in ("ana", "bob")] == [1, 1]
    page = post(client, f"/groups/{group}/labels/{anas}/undo")
    assert "2 failures keep their label, because they were judged again later." in words(page)
    assert [page.count(f"<td>{who}</td>") for who in ("ana", "bob")] == [0, 1]
    reader = world.client(world.token("read"))
    assert "<h2>Labels</h2>" in reader.get(f"/groups/{group}").text
    assert "/undo" not in reader.get(f"/groups/{group}").text
    again = f"/api/v1/groups/{group}/labels/{labels(world.client(world.token('read', name='r2')), group)[0]['number']}"
    assert reader.post(f"{again}:withdraw").status_code == 403


def test_the_oldest_labels_of_a_group_cannot_be_withdrawn_any_more(client: TestClient, world: World) -> None:
    group = failed(client, "1")
    for number in range(25):
        label(world, group, f"person{number}", "SYS.5" if number % 2 else "USER.4")
    assert [one["who"] for one in labels(client, group)] == [f"person{number}" for number in range(24, 4, -1)]


def test_a_withdrawal_that_was_killed_is_completed_when_it_is_asked_for_again(
    client: TestClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = failed(client, *(str(number) for number in range(40)))
    label(world, group, "ana", "SYS.5")
    [number] = [one["number"] for one in labels(client, group)]
    original = withdrawal.withdraw_judgement
    done: list[int] = []

    def killed_after_some(work: UnitOfWork, failure_id: int, *given: Any) -> bool:
        if len(done) == 30:
            raise SystemExit
        done.append(failure_id)
        return original(work, failure_id, *given)

    with monkeypatch.context() as patched:
        patched.setattr(withdrawal, "withdraw_judgement", killed_after_some)
        with pytest.raises(SystemExit):
            world.services.feedback.withdraw_group_label(group, number, "ben")
    assert len(labels(client, group)) == 1
    assert withdraw(client, group, "ana") == (15, 25)
    assert set(verdicts(client).values()) == {MACHINE}
    assert group_of(client, "flash_attn")["labelled_at"] is None
    assert labels(client, group) == []
