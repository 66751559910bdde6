"""Rules of incidents: which failures form one, which held job is the probe, and when the others are released."""

from datetime import timedelta

import pytest

from service.recommend import policy
from service.recommend.incident_rules import (
    DetectedIncident,
    RecentFailure,
    SharedFailures,
    choose_probe,
    detect_incidents,
    release_times,
)
from tests.service.recommend.sample_facts import NOW

SETTINGS = policy.built_in().incident


def failure(number: int, *, user: str | None = None, lineage: str = "") -> RecentFailure:
    return RecentFailure(number, user or f"user{number % 3}", lineage or str(number))


def detect(failures: list[RecentFailure], in_an_incident: frozenset[int] = frozenset()) -> list[DetectedIncident]:
    return detect_incidents([SharedFailures("image:a", SETTINGS, failures)], in_an_incident)


def test_many_jobs_of_several_users_over_one_resource_form_one_incident() -> None:
    [found] = detect([failure(number) for number in range(30)])
    assert (found.key, found.jobs, found.users) == ("image:a", 30, 3)
    assert found.failure_ids == tuple(range(30))


def test_few_failures_or_those_of_one_user_or_one_lineage_form_none() -> None:
    few = [failure(number) for number in range(SETTINGS.jobs - 1)]
    one_user = [failure(number, user="eve") for number in range(30)]
    one_job = [failure(number, lineage="same") for number in range(30)]
    for failures in (few, one_user, one_job, []):
        assert detect(failures) == []


def test_failures_of_an_open_incident_are_not_counted_again() -> None:
    failures = [failure(number) for number in range(SETTINGS.jobs + 1)]
    assert detect(failures, frozenset({0, 1})) == []
    [found] = detect(failures, frozenset({0}))
    assert 0 not in found.failure_ids


def test_a_failure_belongs_to_the_first_incident_only() -> None:
    both = [failure(number) for number in range(6)]
    switch_only = [failure(number) for number in range(6, 12)]
    [found] = detect_incidents(
        [
            SharedFailures("switch:leaf3", SETTINGS, [*both, *switch_only]),
            SharedFailures("fingerprint:x", SETTINGS, both),
        ]
    )
    assert (found.key, found.jobs) == ("switch:leaf3", 12)


def test_the_probe_is_the_first_held_job_that_was_not_tried() -> None:
    assert choose_probe(["small", "large"], set()) == 0
    assert choose_probe(["small", "large"], {"small"}) == 1
    assert choose_probe(["small", "large"], {"small", "large"}) == 0
    assert choose_probe([], set()) is None


def test_held_jobs_are_released_one_after_the_other_at_reproducible_times() -> None:
    lineages = [f"job{number}" for number in range(12)]
    times = release_times(lineages, SETTINGS, NOW)
    assert times == sorted(times)
    assert times[0] >= NOW
    assert (times[-1] - times[0]) / timedelta(minutes=1) == pytest.approx(11 / SETTINGS.pace_per_minute, rel=0.2)
    assert release_times(lineages, SETTINGS, NOW) == times
