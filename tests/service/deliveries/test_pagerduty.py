from typing import Any

import orjson
import pytest

from service.deliveries.channels.pagerduty import PagerDutyChannel, dedup_key
from tests.service.deliveries.receivers import receiver
from tests.service.deliveries.sample_messages import due, payload, poster
from tests.service.frozen_clock import FrozenClock

SEVERITY: Any = {"hardware": "critical", "system": "error", "user": "info"}


def test_an_incident_is_opened(clock: FrozenClock) -> None:
    with receiver() as here:
        here.status = 202
        channel = PagerDutyChannel(
            here.url, "R0UT1NGKEY", poster(), clock, severity=SEVERITY, public_url="https://faultline.example/"
        )
        assert channel.send([due(7)]).kind == "sent"
        event = orjson.loads(here.got[0].body)
    assert (event["routing_key"], event["event_action"]) == ("R0UT1NGKEY", "trigger")
    assert event["client_url"] == "https://faultline.example/failures/7"
    result = event["payload"]
    assert (result["source"], result["severity"], result["class"], result["group"]) == (
        "orion/7",
        "info",
        "USER.1",
        "orion",
    )
    assert result["timestamp"] == "2026-11-20T12:00:00.000Z"
    assert "FileNotFoundError" in result["summary"]


def test_the_source_is_the_suspected_node(clock: FrozenClock) -> None:
    channel = PagerDutyChannel("http://pager", "R0UT1NGKEY", poster(), clock, severity=SEVERITY)
    for side, source in (("hardware", "gpu1"), ("user", "orion/7")):
        event: Any = channel.event(due(7, payload=payload(7, side=side), key="orion/7"))
        assert event["payload"]["source"] == source


def test_a_revised_verdict_goes_to_the_same_incident() -> None:
    first, revised = due(7), due(8, type="failure.revised", key="orion/7", payload=payload(7, cause="HW.NODE.3"))
    assert dedup_key(first, "failure") == dedup_key(revised, "failure")
    assert dedup_key(first, "failure") != dedup_key(due(9), "failure")


def test_failures_of_a_kind_may_be_one_incident() -> None:
    assert dedup_key(due(7), "fingerprint") == dedup_key(due(8), "fingerprint") == "faultline/orion/v1:abc"
    assert len(dedup_key(due(7, key="k" * 500), "failure")) == 255


@pytest.mark.parametrize(("status", "kind"), [(400, "refused"), (429, "retry"), (500, "retry"), (410, "retry")])
def test_a_bad_request_stays_one(clock: FrozenClock, status: int, kind: str) -> None:
    with receiver() as here:
        here.status = status
        here.answer = b'{"errors": ["nothing for you"]}'
        outcome = PagerDutyChannel(here.url, "K", poster(), clock, severity=SEVERITY).send([due(7)])
    assert outcome.kind == kind
    assert "nothing for you" in outcome.detail


def test_a_message_without_a_verdict_is_sent_too(clock: FrozenClock) -> None:
    event = PagerDutyChannel("u", "K", poster(), clock, severity=SEVERITY).event(
        due(7, type="incident.opened", payload={"headline": "the file system is gone"})
    )
    result = event["payload"]
    assert isinstance(result, dict)
    assert (result["severity"], result["source"]) == ("warning", "orion/7")
    assert "the file system is gone" in result["summary"]


@pytest.mark.parametrize(
    ("decision", "held_by", "words"),
    [
        ("resubmit_now", None, "will retry: "),
        ("stop", None, "terminal: "),
        ("ask", None, "terminal unless somebody decides otherwise: "),
        ("hold", "incident", "when the incident is closed"),
    ],
)
def test_who_is_paged_reads_whether_the_job_is_tried_again(
    clock: FrozenClock, decision: str, held_by: str | None, words: str
) -> None:
    channel = PagerDutyChannel("http://pager", "K", poster(), clock, severity=SEVERITY)
    event: Any = channel.event(due(7, payload=payload(7, decision=decision, held_by=held_by)))
    assert words in event["payload"]["custom_details"]["next"]


def test_a_closed_incident_resolves_what_its_opening_triggered(clock: FrozenClock) -> None:
    channel = PagerDutyChannel("http://pager", "K", poster(), clock, severity=SEVERITY)
    for dedup in ("failure", "fingerprint"):
        channel = PagerDutyChannel("http://pager", "K", poster(), clock, severity=SEVERITY, dedup=dedup)
        about = {"key": "orion/incident/5", "payload": {"verdict": {"cluster": "orion", "cause": "SYS.1"}}}
        opened = channel.event(due(1, type="incident.opened", **about))
        closed = channel.event(due(2, type="incident.closed", **about))
        assert (opened["event_action"], closed["event_action"]) == ("trigger", "resolve")
        assert opened["dedup_key"] == closed["dedup_key"]
