"""The administrator's file: checked place by place, its secrets only by reference and never shown."""

import re
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pytest

from service.automation.notifications import MessageKind
from service.db.session import Store
from service.deliveries import config
from service.deliveries.build import targets
from service.deliveries.channels.pagerduty import PagerDutyChannel
from service.deliveries.config import Route, parse
from service.deliveries.records import EndpointState, FailureFacts
from service.deliveries.repository.endpoints import paused
from service.errors import ConfigurationError
from tests.service.deliveries.sample_messages import KEY, SECRET, due, payload, poster
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON

SOUND = """
[network]
allow = ["10.20.0.0/16"]
[sending]
timeout_s = 7
[[endpoint]]
name = "bot"
kind = "webhook"
url = "https://hook.example/in"
secrets = ["file:SECRET", "env:OTHER"]
route = [{ side = ["hardware"], min_gpu_hours = 10 }]
[[endpoint]]
name = "pager"
kind = "pagerduty"
routing_key = "env:OTHER"
[[endpoint]]
name = "alerts"
kind = "alertmanager"
url = "http://10.20.0.9:9093"
[[endpoint]]
name = "verdicts"
kind = "kafka"
"""


@pytest.fixture
def sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "secret").write_text(SECRET + "\n")
    monkeypatch.setenv("OTHER", SECRET)
    return SOUND.replace("SECRET", str(tmp_path / "secret"))


def test_a_sound_file_is_read_on_top_of_the_defaults(sound: str) -> None:
    read = config.parse(sound)
    assert [one.kind for one in read.endpoint] == ["webhook", "pagerduty", "alertmanager", "kafka"]
    assert (read.sending.timeout_s, read.sending.lease_s) == (7, 90)
    first = read.endpoint[0]
    assert isinstance(first, config.Webhook)
    assert [key.get_secret_value() for key in first.secrets] == [KEY, KEY]


def test_no_secret_is_shown(sound: str) -> None:
    shown = repr(config.parse(sound))
    assert SECRET not in shown
    assert "hook.example" not in shown  # an address may carry one
    assert repr(KEY) not in shown


@pytest.mark.parametrize(
    ("change", "result"),
    [
        (('"env:OTHER"]', f'"{SECRET}"]'), "endpoint.0.secrets (line "),
        (('"env:OTHER"]', '"env:NOT_SET"]'), "NOT_SET"),
        (('"env:OTHER"]', '"file:/nowhere/at/all"]'), "/nowhere/at/all"),
        (("https://hook", "ftp://hook"), "endpoint.0.url (line "),
        (("https://hook", "https://ana:pw@hook"), "endpoint.0.url (line "),
        (('"pager"', '"bot"'), "twice: bot"),
        (('"kafka"', '"pigeon"'), "endpoint.3"),
        (("timeout_s = 7", "timeout_s = 700"), "sending.timeout_s (line "),
        (("timeout_s = 7", "patience = 7"), ": unknown setting"),
        (('"10.20.0.0/16"', '"10.20.0.0/99"'), "network.allow.0 (line "),
        (('["hardware"]', '["nobody"]'), "route.0.side"),
    ],
)
def test_what_is_wrong_is_named_and_no_secret_repeated(sound: str, change: tuple[str, str], result: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        config.parse(sound.replace(*change))
    assert result in caught.value.detail
    assert SECRET not in caught.value.detail
    assert "pw@" not in caught.value.detail


def test_a_missing_file_or_one_that_is_not_toml_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="not TOML"):
        config.parse("[[endpoint")
    with pytest.raises(ConfigurationError, match="nested too deeply"):
        config.parse("a = " + "[" * 50_000)
    with pytest.raises(ConfigurationError, match=r"FAULTLINE_DELIVERY_FILE.*nothere\.toml"):
        config.load(tmp_path / "nothere.toml")


def test_an_address_may_be_a_secret_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://hook.example/in?sig=abc\n")
    read = config.parse(f'[[endpoint]]\nname = "a"\nkind = "alertmanager"\nurl = "file:{tmp_path}/url"')
    one = read.endpoint[0]
    assert isinstance(one, config.Alertmanager)
    assert one.url.get_secret_value() == "https://hook.example/in?sig=abc"


def test_the_example_is_sound(tmp_path: Path) -> None:
    text = files("service.deliveries").joinpath("example.toml").read_text(encoding="utf-8")
    for name in ("hook.secret", "pagerduty.key", "owners.url"):
        (tmp_path / name).write_text(SECRET)
        text = text.replace(f"/etc/faultline/{name}", str(tmp_path / name))
    assert {one.kind for one in config.parse(text).endpoint} == {
        "webhook",
        "pagerduty",
        "alertmanager",
        "kafka",
        "chat",
        "folder",
    }


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (("timeout_s = 7", "give_up_after_s = inf"), "sending.give_up_after_s (line 5)"),
        (("timeout_s = 7", "schedule_s = [0, 1e13]"), "sending.schedule_s.1 (line 5)"),
        (("timeout_s = 7", "longest_pause_s = 1e14"), "sending.longest_pause_s (line 5)"),
        (("https://hook.example/in", "https://hook.example:99999/in"), "endpoint.0.url (line 9)"),
        (("https://hook.example/in", "https://höök.example/in"), "endpoint.0.url (line 9)"),
        (("https://hook.example/in", "https://hook.example/i n"), "endpoint.0.url (line 9)"),
        (('kind = "alertmanager"', 'kind = "alertmanager"\nlasts_s = 1e13'), "endpoint.2.lasts_s (line 19)"),
        (("[sending]", '[severity]\nhardwear = "critical"\n[sending]'), "severity (line 4)"),
    ],
)
def test_what_could_never_be_sent_is_refused_at_the_start(sound: str, change: tuple[str, str], place: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        config.parse(sound.replace(*change))
    assert place in str(caught.value)


def test_a_circuit_is_kept_for_the_target_it_was_of(store: Store, clock: FrozenClock) -> None:
    until = clock.at + timedelta(seconds=30)
    with store.unit_of_work() as work:
        state = work.endpoints.lock("e", "here")
        assert state == EndpointState("e", "here")
        work.endpoints.put(replace(state, failures=5, paused_until=until, detail="x" * 999))
    with store.unit_of_work() as work:
        kept = work.endpoints.lock("e", "here")
        assert (kept.failures, kept.paused_until, kept.detail) == (5, until, "x" * 300)
        assert work.endpoints.lock("e", "there") == EndpointState("e", "there")


def test_an_enabled_endpoint_is_tried_at_once(store: Store, clock: FrozenClock) -> None:
    with store.unit_of_work() as work:
        state = work.endpoints.lock("e", "here")
        work.endpoints.put(replace(state, disabled_at=clock.at))
        assert paused(work.endpoints.all()["e"], clock.at)
        work.endpoints.enable("e")
        assert not paused(work.endpoints.all()["e"], clock.at)


def test_a_pause_ends(clock: FrozenClock) -> None:
    until = clock.at + timedelta(seconds=1)
    assert paused(EndpointState("e", "t", paused_until=until), clock.at)
    assert not paused(EndpointState("e", "t", paused_until=until), until)
    assert not paused(None, until)


VERDICT = {"side": "hardware", "cause": "HW.NODE.3", "cluster": "orion", "decision": "hold", "abstained": False}
FACTS = FailureFacts("failed", "ana", "vision", "gpu-long", 40.0, 64, new_kind=True)


@pytest.mark.parametrize(
    ("route", "takes"),
    [
        (Route(), True),
        (Route(type=("failure.*",)), True),
        (Route(type=("incident.opened",)), False),
        (Route(side=("hardware", "system")), True),
        (Route(side=("user",)), False),
        (Route(cause=("HW.*",)), True),
        (Route(cause=("HW.NODE.3",)), True),
        (Route(cause=("HW.NODE",)), False),
        (Route(cluster=("orion",), team=("vision",), queue=("gpu-long",), user=("ana",)), True),
        (Route(cluster=("orion",), team=("speech",)), False),
        (Route(decision=("hold",)), True),
        (Route(abstained=True), False),
        (Route(min_gpu_hours=40), True),
        (Route(min_gpu_hours=41), False),
        (Route(min_gpus=64, new_kind=True), True),
        (Route(min_gpus=65), False),
        (Route(new_kind=False), False),
    ],
)
def test_all_conditions_must_hold(route: Route, takes: bool) -> None:
    assert route.takes("failure.diagnosed", VERDICT, FACTS) is takes


@pytest.mark.parametrize(
    "route",
    [
        Route(team=("vision",)),
        Route(new_kind=False),
        Route(min_gpus=0),
        Route(min_gpu_hours=0),
        Route(side=("hardware",)),
    ],
)
def test_what_is_unknown_fulfils_no_condition(route: Route) -> None:
    assert not route.takes("failure.diagnosed", {}, None)


EVERY = {*get_args(MessageKind), "failure.diagnosed", "failure.revised", "report.published"}
ALERTS = {
    *("failure.diagnosed", "failure.revised", "incident.opened", "incident.closed"),
    *("resubmission.failed", "resubmission.demoted"),
}
KINDS = {
    "pagerduty": 'routing_key = "env:KEY"',
    "alertmanager": 'url = "https://alerts.example"',
    "webhook": 'url = "https://hook.example"\nsecrets = ["env:SECRET"]',
}


@pytest.mark.parametrize("route", ["", "route = [{}]", 'route = [{ type = ["resubmission.*", "report.*"] }]'])
@pytest.mark.parametrize("kind", KINDS)
def test_only_alerts_reach_those_who_are_paged(monkeypatch: pytest.MonkeyPatch, kind: str, route: str) -> None:
    monkeypatch.setenv("KEY", "R0UT1NGKEY")
    monkeypatch.setenv("SECRET", "whsec_" + "A" * 43 + "=")
    config = parse(f'[[endpoint]]\nname = "e"\nkind = "{kind}"\n{KINDS[kind]}\n{route}')
    [target] = targets(config, FrozenClock(NOON), lambda _: pytest.fail("topic"))
    got = {one for one in EVERY if target.wants(one, payload(1), None)}
    permitted = {
        "pagerduty": ALERTS | {"resubmission.succeeded"},  # resolves the incident of its failure
        "alertmanager": ALERTS,
        "webhook": EVERY,
    }[kind]
    routed = {one for one in EVERY if one.startswith(("resubmission.", "report."))} if "type" in route else EVERY
    assert got == permitted & routed


def test_a_job_that_succeeded_again_resolves_the_incident_of_its_failure(clock: FrozenClock) -> None:
    severity: Any = {}
    channel = PagerDutyChannel("http://pager", "K", poster(), clock, severity=severity)
    failed, again = (
        channel.event(due(7)),
        channel.event(due(8, type="resubmission.succeeded", key="orion/7", payload=payload(7))),
    )
    assert (failed["event_action"], again["event_action"]) == ("trigger", "resolve")
    assert failed["dedup_key"] == again["dedup_key"]


def test_the_example_names_every_type_of_message() -> None:
    text = files("service.deliveries").joinpath("example.toml").read_text(encoding="utf-8")
    types = {*get_args(MessageKind), "failure.diagnosed", "failure.revised", "report.published"}
    assert {one for one in types if not re.search(rf"\b{re.escape(one)}\b", text)} == set()
