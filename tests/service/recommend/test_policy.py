"""Policies: merged with the built-in one, validated with line numbers, specialized for a job."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from classifiers.taxonomy import RetryOutlook
from service.errors import ConfigurationError
from service.recommend import policy
from service.recommend.rules.outlook import holds
from tests.service.recommend.sample_facts import AXES, FAILED, LOST_GPU

RULE = """
[[rule]]
name = "all"
decision = "ask"
says = "A person decides."
source = "us"
"""
OVERLAY = f"""version = "night-1"
[limits]
infra_per_lineage = 2
{RULE}
[[override]]
cluster = "orion"
[override.limits]
infra_per_lineage = 5
infra_per_window = 2

[[override]]
queue = "prod"
[override.limits]
infra_per_lineage = 6

[[override]]
cluster = "orion"
queue = "prod"
[override.opt_in]
default = "auto"
"""


def test_a_file_overlays_the_built_in_policy() -> None:
    found = policy.parse(OVERLAY)
    built_in = policy.built_in()
    assert found.version == "night-1/builtin-2"
    assert [rule.name for rule in found.rule] == ["all", *(rule.name for rule in built_in.rule)]
    assert found.limits.infra_per_lineage == 2
    assert found.backoff == built_in.backoff
    assert policy.built_in().limits.infra_per_lineage != 2  # the built-in one is left as it was


def test_a_rule_with_a_known_name_replaces_it() -> None:
    found = policy.parse('version = "1"\n' + RULE.replace('"all"', '"unsure"'))
    assert [rule.name for rule in found.rule] == [rule.name for rule in policy.built_in().rule]
    assert next(rule for rule in found.rule if rule.name == "unsure").says == "A person decides."


@pytest.mark.parametrize(
    ("job", "infra", "window", "mode"),
    [
        ({}, 2, 4, "shadow"),
        ({"cluster": "orion"}, 5, 2, "shadow"),
        ({"queue": "prod"}, 6, 4, "shadow"),
        ({"cluster": "orion", "queue": "prod", "team": "vision"}, 6, 2, "auto"),
        ({"cluster": "other", "queue": "dev"}, 2, 4, "shadow"),
    ],
)
def test_the_more_specific_override_wins(job: dict[str, str], infra: int, window: int, mode: str) -> None:
    found = policy.parse(OVERLAY).effective(**job)
    assert found.limits.infra_per_lineage == infra
    assert found.limits.infra_per_window == window
    assert found.opt_in.default == mode


def test_every_value_has_an_origin() -> None:
    found = policy.parse(OVERLAY, "night.toml")
    of_orion = {name: origin for name, _, origin in found.effective(cluster="orion").values()}
    assert of_orion["limits.infra_per_lineage"] == "night.toml:6 (cluster orion)" or of_orion[
        "limits.infra_per_lineage"
    ].endswith("(cluster orion)")
    assert of_orion["backoff.base_s"] == "built in"
    assert {name: origin for name, _, origin in found.values()}["limits.infra_per_lineage"] == "night.toml:3"
    assert found.origin("rule", "all") == "night.toml:5"
    assert found.origin("rule", "unsure") == "built in"


def test_the_built_in_policy_decides_every_outlook_and_acts_only_with_opt_in() -> None:
    outlooks = {outlook for rule in policy.built_in().rule for outlook in rule.when.retry_outlook or ()}
    assert outlooks == {"helps", "helps_elsewhere", "after_repair", "futile"}
    assert policy.built_in().opt_in.default == "shadow"


def test_each_built_in_rule_decides_some_failure() -> None:
    """The first rule whose conditions hold decides: one behind another with wider conditions never does."""
    rules = policy.built_in().rule
    statuses = {"failed", *(str(status) for rule in rules for status in rule.when.status or ())}
    categories = [None, *(code for rule in rules for code in rule.when.category or ())]
    limits = {rule.when.confidence_below for rule in rules} | {rule.when.confidence_at_least for rule in rules}
    confidences = [0.0, 1.0, *(limit for limit in limits if limit is not None)]
    flags = list(product((False, True), repeat=3))
    deciding = set()
    for cause, category, outlook, confidence, (abstained, disputed, uncorroborated) in product(
        AXES.causes, categories, get_args(RetryOutlook), confidences, flags
    ):
        verdict = replace(
            LOST_GPU,
            cause=cause,
            side=AXES.side_of(cause),
            category=category,
            retry_outlook=outlook,
            confidence=confidence,
            abstained=abstained,
            disputed=disputed,
            uncorroborated=uncorroborated,
        )
        for status, suspect_node in product(statuses, (False, True)):
            job = replace(FAILED, status=status)
            matching = (rule.name for rule in rules if holds(rule.when, verdict, job, suspect_node=suspect_node))
            deciding.add(next(matching, None))
    assert {rule.name for rule in rules} - deciding == set(), "rules above decide whatever these match: move them up"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (('version = "night-1"', ""), "version"),
        (("infra_per_lineage = 2", 'infra_per_lineage = "2"'), "limits.infra_per_lineage (line 3)"),
        (("infra_per_lineage = 2", "infra_per_lineage = -1"), "limits.infra_per_lineage (line 3)"),
        (("infra_per_lineage = 2", "infra_per_linage = 2"), "limits.infra_per_linage (line 3)"),
        (("decision = ", "decison = "), "rule.0.decison (line 7)"),
        (('"ask"', '"retry"'), "rule.0.decision (line 7)"),
        (("[[rule]]", "[[rule]]\nwhen = { weather = ['fine'] }"), "rule.0.when.weather (line 6)"),
        (('cluster = "orion"\n[override.limits]', "[override.limits]"), "override.0 (line 11)"),
        (("infra_per_window = 2", "infra_per_window = 2.5"), "override.0.limits.infra_per_window (line 15)"),
        (("[override.opt_in]", "[override.rules]"), "override.2.rules (line 25)"),
        (("[limits]", "[limit]"), "limit (line 2)"),
    ],
)
def test_errors_name_setting_and_line(change: tuple[str, str], place: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        policy.parse(OVERLAY.replace(*change, 1))
    assert place in [error.field for error in caught.value.errors]
    assert place in caught.value.detail


def test_unreadable_policy_files_raise_configuration_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"not TOML: .*line 3"):
        policy.parse('version = "1"\nrule = [[\n)')
    with pytest.raises(ConfigurationError, match=r"nothere\.toml"):
        policy.load(tmp_path / "nothere.toml")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('version = "1"\n[[rule]]\nname = ["unsure"]\n', "rule.0.name (line 3)"),
        ('version = "1"\n[[retrier]]\nlabel = {a = 1}\n', "retrier.0.label (line 3)"),
        ('version = "1"\n[limits]\nwindow_hours = 1e9\n', "limits.window_hours (line 3)"),
        ('version = "1"\n[storm]\nwindow_minutes = 1e12\n', "storm.window_minutes (line 3)"),
        ('version = "1"\n[backoff]\nmax_s = 1e14\n', "backoff.max_s (line 3)"),
        ('version = "1"\n[[override]]\ncluster = "orion"\nlimits.rate_minutes = 1e12\n', "override.0.limits.rate"),
    ],
)
def test_names_that_are_no_text_and_times_beyond_the_calendar_are_refused_with_their_place(
    text: str, place: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        policy.parse(text)
    assert place in str(caught.value)
