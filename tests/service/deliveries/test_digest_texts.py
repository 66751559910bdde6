"""Messages of chats and mails say what happened: each failure once, by its latest verdict."""

from typing import Any

import orjson
import pytest

from service.db.session import Store
from service.deliveries.channels.chat import ChatChannel
from service.deliveries.channels.message_text import text, title
from service.deliveries.config import defaults
from service.deliveries.drain import Target
from service.deliveries.records import DueDelivery
from tests.service.deliveries.receivers import receiver
from tests.service.deliveries.sample_messages import LOOPBACK, drain, due, payload, put
from tests.service.frozen_clock import FrozenClock

pytest.importorskip("apprise")
SCHEMAS = defaults()["chat"]["schemas"]


def mattermost(port: str) -> ChatChannel:
    return ChatChannel(f"mmost://127.0.0.1:{port}/abcdefghijklmnopqrstuvwxyz", SCHEMAS, [LOOPBACK], timeout_s=10)


def port_of(url: str) -> str:
    return url.rsplit(":", 1)[1].partition("/")[0]


def revised(number: int, **changes: Any) -> DueDelivery:
    return due(100 + number, type="failure.revised", key=f"orion/{number}", payload=payload(number, **changes))


def test_without_a_digest_a_channel_gets_each_message_of_its_own(store: Store, clock: FrozenClock) -> None:
    with receiver() as here:
        channel = Target("ops", (), mattermost(port_of(here.url)), here.url, digest_s=0)
        work = drain(store, clock, [channel])
        put(store, 1, 2, 3)
        work.route()
        assert work.deliver("ops") == 3
        texts = [orjson.loads(one.body)["text"] for one in here.got]
    assert len(texts) == 3
    for number, one in enumerate(texts, 1):
        assert f"orion/{number} failed" in one


def test_a_digest_tells_the_revised_verdict_and_counts_a_failure_once() -> None:
    messages = [due(1), revised(1, cause="HW.NODE.3", side="hardware")]
    assert "orion/1: hardware" in title(messages)
    shown = text(messages, None)
    assert "HW.NODE.3" in shown
    assert "USER.1" not in shown
    assert "of one kind" in title([*messages, due(2)])
    assert title([*messages, due(2)]).startswith("2 failures")


def test_messages_that_are_no_failures_are_not_called_so() -> None:
    one = due(1, type="resubmission.requested")
    messages = [one, due(2, type="resubmission.succeeded", key="orion/1", payload=one.payload)]
    assert "failures" not in title(messages)


def test_a_text_that_is_longer_than_a_receiver_takes_comes_in_parts() -> None:
    lines = [f"{number}. {'word ' * 150}end{number}" for number in range(9)]
    report = due(1, type="report.published", payload={"title": "Week 47", "summary": ["Week 47", *lines], "page": "/r"})
    with receiver() as here:
        assert mattermost(port_of(here.url)).send([report]).kind == "sent"
        texts = [orjson.loads(one.body)["text"] for one in here.got]
    assert max(map(len, texts)) <= 4_000
    assert all(f"end{number}" in "".join(texts) for number in range(9))


@pytest.mark.parametrize(
    ("held_by", "words"),
    [
        (None, "when what is broken is repaired"),
        ("repair", "when what is broken is repaired"),
        ("incident", "when the incident is closed"),
        ("storm", "when this has passed"),
        ("rate", "when the limit on resubmits allows it"),
        ("window", "when the limit for this job allows it"),
    ],
)
def test_a_message_names_what_a_hold_waits_for(held_by: str | None, words: str) -> None:
    message = due(1, payload=payload(1, decision="hold", held_by=held_by))
    assert f"it is tried again {words}." in text([message], None)
    stopped = due(1, payload=payload(1, decision="stop", held_by=held_by))
    assert "nothing is tried again automatically" in text([stopped], None)
