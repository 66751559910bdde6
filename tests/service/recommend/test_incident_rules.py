"""When failures are one incident, who goes first, and when the rest goes."""

from datetime import timedelta

import pytest

from service.recommend import incident_rules, policy
from service.recommend.facts import Outcome
from service.recommend.incident_rules import Recent
from tests.service.recommend.worlds import NOW

SETTINGS = policy.built_in().incident


def failure(number: int, *keys: str, user: str | None = None, minutes_ago: float = 1, lineage: str = "") -> Recent:
    at = NOW - timedelta(minutes=minutes_ago)
    return Recent(number, at, user or f"user{number % 3}", lineage or str(number), keys)


def test_many_jobs_of_several_users_over_one_thing_are_one_incident() -> None:
    [found] = incident_rules.fold([failure(number, "filesystem:/lustre") for number in range(30)], SETTINGS, NOW)
    assert (found.key, found.jobs, found.users) == ("filesystem:/lustre", 30, 3)
    assert found.failures == tuple(range(30))


def test_few_one_users_old_or_one_jobs_failures_are_none() -> None:
    few = [failure(number, "image:a") for number in range(SETTINGS.jobs - 1)]
    one_user = [failure(number, "image:a", user="eve") for number in range(30)]
    old = [failure(number, "image:a", minutes_ago=SETTINGS.window_minutes + 1) for number in range(30)]
    one_job = [failure(number, "image:a", lineage="same") for number in range(30)]
    for recent in (few, one_user, old, one_job, []):
        assert incident_rules.fold(recent, SETTINGS, NOW) == []


def test_a_failure_belongs_to_the_widest_incident_only() -> None:
    wide = [failure(number, "switch:leaf3", "fingerprint:1:x") for number in range(6)]
    wider = [failure(number, "switch:leaf3") for number in range(6, 12)]
    [found] = incident_rules.fold([*wide, *wider], SETTINGS, NOW)
    assert (found.key, found.jobs) == ("switch:leaf3", 12)


def test_the_smallest_job_goes_first() -> None:
    assert incident_rules.probe([("a", 512), ("b", 8), ("c", 8)]) == "b"
    assert incident_rules.probe([("a", 512), ("b", None)]) == "b"
    assert incident_rules.probe([]) is None


def test_a_probe_is_due_after_a_while_and_again_after_one_failed() -> None:
    opened, wait = NOW, timedelta(minutes=SETTINGS.probe_minutes)
    assert not incident_rules.probe_due(opened, None, SETTINGS, NOW + wait / 2)
    assert incident_rules.probe_due(opened, None, SETTINGS, NOW + wait)
    assert not incident_rules.probe_due(opened, NOW + wait, SETTINGS, NOW + wait * 1.5)


@pytest.mark.parametrize(
    ("outcome", "over"),
    [("succeeded", True), ("got_past", True), ("failed_same", False), ("failed_otherwise", None), ("unknown", None)],
)
def test_a_probes_end_decides(outcome: Outcome, over: bool | None) -> None:
    assert incident_rules.opened_by(outcome, NOW, SETTINGS, NOW) is over


def test_a_probe_that_runs_long_enough_has_got_through() -> None:
    long = timedelta(minutes=SETTINGS.probe_wait_minutes)
    assert incident_rules.opened_by(None, NOW, SETTINGS, NOW + long / 2) is None
    assert incident_rules.opened_by(None, NOW, SETTINGS, NOW + long) is True
    assert incident_rules.opened_by(None, None, SETTINGS, NOW + long) is None


def test_the_rest_goes_one_after_the_other_always_at_the_same_times() -> None:
    keys = [f"job{number}" for number in range(12)]
    turns = incident_rules.turns(keys, SETTINGS, NOW)
    times = [turns[key] for key in keys]
    assert times == sorted(times)
    assert times[0] >= NOW
    minutes = (times[-1] - times[0]).total_seconds() / 60
    assert minutes == pytest.approx(11 / SETTINGS.pace_per_minute, rel=0.2)
    assert incident_rules.turns(keys, SETTINGS, NOW) == turns
