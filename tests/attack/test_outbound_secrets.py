"""Secrets in any text of an event reach no receiver of messages and no metric."""

import base64
import quopri
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest

from service.contracts.event import JobCompletion
from service.deliveries import build
from service.deliveries.channels.topic import TopicChannel
from service.deliveries.config import DeliveryConfig, load
from service.drift.records import ClusterDrift, DriftFigure, DriftReport, Figure
from service.drift.watch import publish_metrics
from service.messaging.record import Message
from service.telemetry import Telemetry
from tests.attack.test_secrets import with_secrets
from tests.service.deliveries.receivers import Inbox, Receiver, mail_server, receiver
from tests.service.deliveries.sample_messages import SECRET, drain
from tests.service.web.world import NOW, World, event, lines, make_world

pytest.importorskip("apprise")
pytest.importorskip("aiosmtpd.controller")

# Made up: a token of GitHub, an access key of AWS, a token of Slack.
FORMATS = {
    "github": "ghp_aB1234567cDeFgHiJkLmNoPqRsTuVwXyZ12",
    "aws": "AKIAIOSFODNN7EXAMPLQ",
    "slack": "xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
}
ENDPOINTS = """
public_url = "https://faultline.example"
[network]
allow = ["127.0.0.0/8"]
[[endpoint]]
name = "hook"
kind = "webhook"
url = "{hook}"
secrets = ["env:HOOK_SECRET"]
[[endpoint]]
name = "pager"
kind = "pagerduty"
url = "{pager}"
routing_key = "env:HOOK_SECRET"
[[endpoint]]
name = "pager-of-kinds"
kind = "pagerduty"
url = "{pager}"
routing_key = "env:HOOK_SECRET"
dedup = "fingerprint"
[[endpoint]]
name = "alerts"
kind = "alertmanager"
url = "{alerts}"
[[endpoint]]
name = "topic"
kind = "kafka"
[[endpoint]]
name = "chat"
kind = "chat"
url = "env:CHAT"
[[endpoint]]
name = "mail"
kind = "chat"
url = "env:MAIL"
"""


class Broker:
    """Remembers what a topic got."""

    def __init__(self) -> None:
        self.got: list[Message] = []

    def send(self, topic: str, messages: Sequence[Message]) -> None:
        del topic
        self.got.extend(messages)

    def close(self) -> None:
        """Nothing to close."""


class Outside:
    """A local receiver of every kind."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, held: ExitStack) -> None:
        self.web: dict[str, Receiver] = {
            name: held.enter_context(receiver()) for name in ("hook", "pager", "alerts", "chat")
        }
        self.inbox: Inbox
        self.inbox, mail = held.enter_context(mail_server())
        self.broker = Broker()
        port = self.web["chat"].url.rsplit(":", 1)[1].partition("/")[0]
        monkeypatch.setenv("HOOK_SECRET", SECRET)
        monkeypatch.setenv("CHAT", f"mmost://127.0.0.1:{port}/abcdefghijklmnopqrstuvwxyz")
        monkeypatch.setenv("MAIL", mail.replace("{user}", "on-call"))
        file = folder / "delivery.toml"
        addresses = {name: self.web[name].url for name in ("hook", "pager", "alerts")}
        file.write_text(ENDPOINTS.format(**addresses), encoding="utf-8")
        self.config: DeliveryConfig = load(file)

    def send(self, world: World) -> None:
        """Send all messages that the world has for the receivers."""
        found = build.targets(self.config, world.clock, lambda name: TopicChannel(name, self.broker, lambda: None))
        sending = drain(world.store, world.clock, found)
        while sending.route():
            pass
        for one in found:
            while sending.deliver(one.name):
                pass

    def arrived(self) -> dict[str, bytes]:
        """Everything that arrived, by receiver; mail and its headers decoded."""
        found = {
            name: b"\n".join(one.path.encode() + repr(one.headers).encode() + one.body for one in made.got)
            for name, made in self.web.items()
        }
        found["topic"] = b"\n".join(
            (one.key or b"") + (one.value or b"") + repr(one.headers).encode() for one in self.broker.got
        )
        found["mail"] = b"\n".join(
            b"\n".join(
                [quopri.decodestring(mail.as_bytes()), str(mail["subject"]).encode()]
                + [part.get_payload(decode=True) for part in mail.walk() if not part.is_multipart()]
            )
            for mail in self.inbox.mails
        )
        return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = make_world(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    with ExitStack() as held:
        yield Outside(tmp_path, monkeypatch, held)


def events(secret: str) -> list[dict[str, Any]]:
    """Jobs with the secret in every text, also in the names that are their identity; some have a retry, some a node."""
    everything = orjson.loads(orjson.dumps(with_secrets(JobCompletion, secret=lambda: secret)))
    logs = [
        {
            "rank": 0,
            "node": f"gpu018-{secret}",
            "stream": "stderr",
            "tail": f"{word} {secret}\nModuleNotFoundError: {secret}",
        }
        for word in ("Xid 79", "Stale file handle", "ModuleNotFoundError: No module named")
    ]
    named = {"cluster": f"orion-{secret}", "job_id": f"ns/pod/train-{secret}"}
    return [
        *(event(f"{number}", **{**everything, "logs": [log]}) for number, log in enumerate(logs)),
        *(event(f"{number}", **{**named, "attempt": number, "logs": [log]}) for number, log in enumerate(logs)),
        *(
            event(
                f"opted-{number}",
                **{**named, "job_id": f"{number}-{secret}", "labels": {"faultline/resubmit": "auto"}, "logs": [log]},
            )
            for number, log in enumerate(logs)
        ),
    ]


@pytest.mark.parametrize("kind", FORMATS)
def test_no_receiver_gets_a_secret(world: World, outside: Outside, kind: str) -> None:
    secret = FORMATS[kind]
    sent = events(secret)
    with world.client() as client:
        answer = client.post("/api/v1/events", content=lines(*sent)).json()
        assert answer["accepted"] == len(sent), answer
        world.services.automation.tick()
        outside.send(world)
        metrics = client.get("/metrics").text
    arrived = outside.arrived()
    assert {name for name, got in arrived.items() if got} == {"hook", "pager", "alerts", "topic", "chat", "mail"}
    for name, got in arrived.items():
        for form in (secret.encode(), base64.b64encode(secret.encode()), secret[6:].encode()):
            assert form not in got, f"{name}: {got[max(0, got.index(form) - 200) :][:300]!r}"
    assert b"redacted" in arrived["hook"]
    assert secret not in metrics


@pytest.mark.parametrize("kind", FORMATS)
def test_the_name_of_a_cluster_is_no_secret_in_a_metric(kind: str) -> None:
    secret = FORMATS[kind]
    telemetry = Telemetry()
    found = ClusterDrift(
        cluster=f"orion-{secret}",
        failures=9,
        reference_failures=9,
        figures=(
            DriftFigure(measure="abstained", recent=Figure(value=0.5, low=0.1, high=0.9, failures=9), reference=None),
        ),
    )
    times = dict.fromkeys(("at", "recent_since", "reference_since", "audits_since", "audits_reference_since"), NOW)
    publish_metrics(telemetry, DriftReport(clusters=(found,), **times))
    shown = telemetry.render()
    assert b"orion" in shown
    assert secret.encode() not in shown
