"""The administrator's file: checked place by place, its secrets only by reference and never shown."""

from importlib.resources import files
from pathlib import Path

import pytest

from service.deliveries import config
from service.errors import ConfigurationError
from tests.service.deliveries.sample_messages import KEY, SECRET

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
