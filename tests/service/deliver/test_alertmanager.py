from typing import Any

import orjson

from service.deliver.alertmanager import AlertmanagerChannel
from tests.service.deliver.made import due, poster
from tests.service.deliver.receivers import receiver
from tests.service.store.conftest import FixedClock

SEVERITY: Any = {"user": "info"}


def test_a_batch_of_alerts_is_sent_at_once_and_each_ends_by_itself(clock: FixedClock) -> None:
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
        "node": "gpu1",
        "fingerprint": "v1:abc",
        "job_id": "7",
    }
    assert second["labels"]["job_id"] == "8"
    assert (first["startsAt"], first["endsAt"]) == ("2026-11-20T12:00:00+00:00", "2026-11-20T13:10:00+00:00")


def test_alerts_of_a_kind_may_be_one(clock: FixedClock) -> None:
    channel = AlertmanagerChannel("u", poster(), clock, severity=SEVERITY, lasts_s=1, dedup="fingerprint")
    assert channel.alert(due(7))["labels"] == channel.alert(due(8))["labels"]
