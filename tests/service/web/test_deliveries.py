"""What a receiver was not told can be seen, and told again."""

from dataclasses import replace
from datetime import timedelta

from fastapi.testclient import TestClient

from service.deliveries.records import NewDelivery, OutboxMessage
from tests.service.web.access.test_auth import form_token
from tests.service.web.world import World


def give_up(world: World) -> None:
    with world.store.unit_of_work() as work:
        work.outbox.add([OutboxMessage("failure.diagnosed", "orion/7", {"failure_id": 7})])
        [message] = work.outbox.lease("test", limit=1, seconds=60)
        work.deliveries.add([NewDelivery(message.id, "bot", "the receiver accepts no more messages")])


def test_given_up_is_shown_and_sent_again_by_api_and_page(world: World, client: TestClient) -> None:
    give_up(world)
    [one] = client.get("/api/v1/deliveries").json()["items"]
    assert (one["endpoint"], one["key"], one["detail"]) == ("bot", "orion/7", "the receiver accepts no more messages")
    page = client.get("/deliveries")
    assert "the receiver accepts no more messages" in page.text
    sent = client.post(
        f"/deliveries/{one['message_id']}/bot/resend", data={"form_token": form_token(client, "/deliveries")}
    )
    assert sent.status_code == 303
    assert client.get("/api/v1/deliveries").json()["items"] == []
    [waiting] = client.get("/api/v1/deliveries?state=waiting").json()["items"]
    assert waiting["message_id"] == one["message_id"]
    assert client.post(f"/api/v1/deliveries/{one['message_id']}/bot:resend").status_code == 404


def test_messages_that_wait_are_shown_with_their_next_attempt(world: World, client: TestClient) -> None:
    assert "None. Every message was delivered." in client.get("/deliveries").text
    with world.store.unit_of_work() as work:
        work.outbox.add([OutboxMessage("failure.diagnosed", "orion/7", {"failure_id": 7})])
        [message] = work.outbox.lease("test", limit=1, seconds=60)
        work.deliveries.add([NewDelivery(message.id, "bot")])
        state = work.endpoints.lock("bot", "https://bot.example")
        work.endpoints.put(replace(state, failures=6, paused_until=world.clock.at + timedelta(minutes=5)))
    page = client.get("/deliveries").text
    assert "Every message was delivered" not in page
    assert "orion/7" in page
    assert f"after {world.clock.at + timedelta(minutes=5):%Y-%m-%d %H:%M:%S} UTC" in page
    with world.store.unit_of_work() as work:
        work.endpoints.put(replace(state, disabled_at=world.clock.at))
    assert "disabled by the receiver" in client.get("/deliveries").text
    assert '<a href="/dead-letters">' in page
    assert '<a href="/deliveries">' in client.get("/dead-letters").text


def test_resending_enables_a_disabled_receiver(world: World, client: TestClient) -> None:
    give_up(world)
    with world.store.unit_of_work() as work:
        state = work.endpoints.lock("bot", "https://bot.example")
        work.endpoints.put(replace(state, disabled_at=world.clock.at, detail="410"))
    [one] = client.get("/api/v1/deliveries").json()["items"]
    assert client.post(f"/api/v1/deliveries/{one['message_id']}/bot:resend").status_code == 200
    [receiver] = client.get("/api/v1/deliveries").json()["endpoints"]
    assert (receiver["name"], receiver["disabled_at"]) == ("bot", None)
