"""Whatever a person changes leaves an entry with who and what, and the chain holds."""

from fastapi.testclient import TestClient

from service.dead_letters.records import DeadLetter
from service.deliveries.records import NewDelivery, OutboxMessage
from tests.service.web.world import World, event, lines


def test_every_kind_of_change_is_written_down(world: World, client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event("1")))
    failure = client.get("/api/v1/failures").json()["items"][0]["id"]
    world.services.group_counts()
    group = client.get("/api/v1/groups").json()["items"][0]["id"]
    correction = {"kind": "correct", "side": "hardware", "cause": "HW.GPU.1"}
    for path, body in (
        (f"/failures/{failure}/feedback", correction),
        (f"/groups/{group}/actions", {"action": "resolve"}),
        (f"/failures/{failure}:hold", {}),
        (f"/failures/{failure}:never", {}),
        (f"/failures/{failure}:lift", {}),
        ("/automation:stop", {"reason": "drill"}),
        ("/automation:start", {}),
    ):
        answer = client.post(f"/api/v1{path}", json=body)
        assert answer.status_code < 300, (path, answer.text)
    with world.store.reading() as reading:
        entries = reading.audit_log.page(limit=50).items
        assert reading.audit_log.verify()[1] is None
    result = {entry.what: entry for entry in entries}
    assert set(result) >= {
        "verdict.correct",
        "group.changed",
        "failure.held",
        "failure.never",
        "failure.lifted",
        "automation.turned",
    }
    assert result["verdict.correct"].before["side"] == "user"
    assert result["verdict.correct"].after["side"] == "hardware"
    assert {entry.who for entry in entries} == {"this machine"}


def test_what_is_sent_again_is_written_down(world: World, client: TestClient) -> None:
    """A record that was refused, or a receiver that was disabled, comes in use by it."""
    with world.store.unit_of_work() as work:
        work.outbox.add([OutboxMessage("failure.diagnosed", "orion/7", {"failure_id": 7})])
        [message] = work.outbox.lease("test", limit=1, seconds=60)
        work.deliveries.add([NewDelivery(message.id, "bot", "gone")])
        [letter] = work.dead_letters.add([DeadLetter(lines(event("1")).decode(), "0" * 64, "jobs/0/5", "was too new")])
    assert client.post(f"/api/v1/dead-letters/{letter}:resend").status_code == 200
    assert client.post(f"/api/v1/deliveries/{message.id}/bot:resend").status_code == 200
    with world.store.reading() as reading:
        entries = {one.subject: (one.who, one.what, one.after) for one in reading.audit_log.page(limit=50).items}
    assert entries[f"delivery/{message.id}"] == ("this machine", "delivery.resent", {"endpoint": "bot"})
    who, what, after = entries[f"dead-letter/{letter}"]
    assert (who, what, after["outcome"]) == ("this machine", "dead_letter.resent", "accepted")
