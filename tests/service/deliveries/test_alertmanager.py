import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from service.deliveries.channels.alertmanager import AlertmanagerChannel
from service.deliveries.records import DueDelivery
from tests.labs.alertmanager import alertmanager
from tests.service.deliveries.receivers import receiver
from tests.service.deliveries.sample_messages import due, payload, poster
from tests.service.frozen_clock import FrozenClock

SEVERITY: Any = {"user": "info"}


@pytest.mark.parametrize(
    ("changes", "node"),
    [
        ({"side": "hardware"}, "gpu1"),
        ({"side": "hardware", "abstained": True}, None),
        ({"side": "system", "suspect": None}, None),
        ({"side": "user"}, None),
    ],
)
def test_an_alert_names_a_node_only_if_the_verdict_suspects_it(
    clock: FrozenClock, changes: dict[str, Any], node: str | None
) -> None:
    channel = AlertmanagerChannel("http://alerts", poster(), clock, severity=SEVERITY, lasts_s=3600)
    labels: Any = channel.alert(due(7, payload=payload(7, **changes)))["labels"]
    assert labels.get("node") == node


def test_an_alert_says_whether_the_job_is_tried_again_and_stays_the_same_alert(clock: FrozenClock) -> None:
    channel = AlertmanagerChannel("http://alerts", poster(), clock, severity=SEVERITY, lasts_s=3600)
    retried, stopped = (
        channel.alert(due(7, payload=payload(7, decision=decision))) for decision in ("resubmit_now", "stop")
    )
    texts: Any = [one["annotations"] for one in (retried, stopped)]
    assert [one["next"].partition(":")[0] for one in texts] == ["will retry", "terminal"]
    assert retried["labels"] == stopped["labels"]
    assert "next" not in str(channel.alert(incident(5, "opened"))["annotations"])


def test_a_batch_of_alerts_is_sent_at_once_and_each_ends_by_itself(clock: FrozenClock) -> None:
    clock.sleep(600)
    with receiver() as here:
        url = here.url.removesuffix("/hook")
        channel = AlertmanagerChannel(url + "/", poster(), clock, severity=SEVERITY, lasts_s=3600)
        assert channel.send([due(7), due(8)]).kind == "sent"
        [got] = here.got
    assert got.path == "/api/v2/alerts"
    first, second = orjson.loads(got.body)
    assert first["labels"] == {
        "alertname": "FaultlineFailure",
        "severity": "info",
        "cluster": "orion",
        "side": "user",
        "cause": "USER.1",
        "fingerprint": "v1:abc",
        "job_id": "7",
    }
    assert second["labels"]["job_id"] == "8"
    assert (first["startsAt"], first["endsAt"]) == ("2026-11-20T12:00:00+00:00", "2026-11-20T13:10:00+00:00")


def test_alerts_of_a_kind_may_be_one(clock: FrozenClock) -> None:
    channel = AlertmanagerChannel("u", poster(), clock, severity=SEVERITY, lasts_s=1, dedup="fingerprint")
    assert channel.alert(due(7))["labels"] == channel.alert(due(8))["labels"]


def incident(number: int, kind: str, **changes: Any) -> DueDelivery:
    return due(
        number,
        type=f"incident.{kind}",
        key=f"orion/incident/{number}",
        payload={"verdict": {"cluster": "orion", "cause": "SYS.1"}, "incident": {"id": number}},
        **changes,
    )


def test_each_incident_has_its_own_alert_which_ends_when_it_is_closed(clock: FrozenClock) -> None:
    channel = AlertmanagerChannel("u", poster(), clock, severity=SEVERITY, lasts_s=3600)
    first, second = (channel.alert(incident(number, "opened")) for number in (5, 6))
    assert first["labels"] != second["labels"]
    closed = channel.alert(incident(5, "closed"))
    assert closed["labels"] == first["labels"]
    assert datetime.fromisoformat(str(closed["endsAt"])) <= clock.now()
    assert datetime.fromisoformat(str(closed["startsAt"])) <= datetime.fromisoformat(str(closed["endsAt"]))


def test_messages_without_a_job_are_alerts_of_their_own(clock: FrozenClock) -> None:
    channel = AlertmanagerChannel("u", poster(), clock, severity=SEVERITY, lasts_s=3600, dedup="fingerprint")
    reports = [due(n, type="report.published", key=f"report/2026-W4{n}", payload={"title": "t"}) for n in (1, 2)]
    first, second = (channel.alert(one)["labels"] for one in reports)
    assert first != second


@pytest.mark.lab
def test_a_real_alertmanager_holds_the_alert_and_a_second_send_makes_no_second_one(tmp_path: Path) -> None:
    with alertmanager(tmp_path) as address:
        clock = FrozenClock(datetime.now(UTC))
        channel = AlertmanagerChannel(
            address, poster(), clock, severity=SEVERITY, lasts_s=3600, public_url="https://faultline.example"
        )
        one = due(7, created_at=clock.at)
        assert [channel.send([one]).kind for _ in range(2)] == ["sent", "sent"]
        with urllib.request.urlopen(f"{address}/api/v2/alerts", timeout=120) as answer:
            [held] = orjson.loads(answer.read())
    assert held["labels"]["cause"] == "USER.1"
    assert held["status"]["state"] != "resolved"
    assert held["generatorURL"] == "https://faultline.example/failures/7"


@pytest.mark.lab
def test_a_real_alertmanager_ends_the_alert_of_an_incident_that_is_closed(tmp_path: Path) -> None:
    with alertmanager(tmp_path) as address:
        clock = FrozenClock(datetime.now(UTC))
        channel = AlertmanagerChannel(address, poster(), clock, severity=SEVERITY, lasts_s=3600)
        opened = [incident(number, "opened", created_at=clock.at) for number in (5, 6)]
        assert channel.send(opened).kind == "sent"
        clock.at = datetime.now(UTC)
        assert channel.send([incident(5, "closed", created_at=clock.at)]).kind == "sent"
        with urllib.request.urlopen(f"{address}/api/v2/alerts", timeout=120) as answer:
            held = orjson.loads(answer.read())
    assert [one["labels"]["subject"] for one in held] == ["orion/incident/6"]
