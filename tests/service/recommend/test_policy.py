"""A policy is data: checked place by place, the built-in one sound."""

from pathlib import Path

import pytest

from service.errors import ConfigurationError
from service.recommend import policy

SOUND = """
version = "night-1"
prior_weight = 20
[[rule]]
name = "all"
decision = "ask"
says = "A person decides."
source = "us"
"""


def test_a_sound_policy_is_read() -> None:
    found = policy.parse(SOUND)
    assert (found.version, found.rule[0].decision) == ("night-1/builtin-2", "ask")


def test_the_built_in_policy_ends_each_outlook_in_a_decision() -> None:
    outlooks = {outlook for rule in policy.built_in().rule for outlook in rule.when.retry_outlook or ()}
    assert outlooks == {"helps", "helps_elsewhere", "after_repair", "futile"}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (("decision = ", "decison = "), "rule.0.decison"),
        (('"ask"', '"retry"'), "rule.0.decision"),
        (("prior_weight = 20", "prior_weight = -1"), "prior_weight"),
        (("[[rule]]", "[[rule]]\nwhen = { weather = ['fine'] }"), "rule.0.when.weather"),
        (("[[rule]]", "[[rule]]\nwhen = { side = ['nobody'] }"), "rule.0.when.side"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(change: tuple[str, str], place: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        policy.parse(SOUND.replace(*change))
    assert any(error.field.startswith(place) for error in caught.value.errors)


def test_what_is_not_toml_or_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="not TOML"):
        policy.parse("[[rule")
    with pytest.raises(ConfigurationError, match=r"nothere\.toml"):
        policy.load(tmp_path / "nothere.toml")
