"""Rules about other jobs: incidents, storms, rates."""

from dataclasses import replace
from datetime import timedelta

from service.contracts.advice import Advice
from service.recommend import policy
from service.recommend.advise import advise
from service.recommend.facts import ActionRate, Lineage, OpenIncident, StormState
from tests.service.recommend.sample_facts import ALONE, NOW, PASSING, ran

BUILT_IN = policy.built_in()
INCIDENT = OpenIncident(7, "fingerprint:1:x", NOW - timedelta(minutes=5), jobs=30, users=8)


def with_facts(**known: object) -> Advice:
    return advise(PASSING, ran(1), replace(ALONE, **known), BUILT_IN)  # type: ignore[arg-type]


def test_an_open_incident_holds() -> None:
    advice = with_facts(incident=INCIDENT)
    assert (advice.decision, advice.held_by, advice.incident, advice.mode) == ("hold", "incident", 7, "act")
    assert "incident: incident 7: 30 jobs of 8 users failed this way; held until it is closed" in advice.reasons
    assert with_facts(incident=replace(INCIDENT, state="closed")).decision == "resubmit_after"


def test_a_job_released_from_an_incident_starts_at_its_time() -> None:
    turn = NOW + timedelta(seconds=90)
    released = replace(INCIDENT, turn_at=turn, state="releasing")
    advice = with_facts(incident=released, lineage=Lineage("a", 3, same_fingerprint_without_progress=3))
    assert (advice.decision, advice.mode) == ("resubmit_after", "act")
    assert advice.action is not None
    assert advice.action.not_before == turn
    probe = with_facts(incident=replace(released, is_probe=True))
    assert any("is the probe" in reason for reason in probe.reasons)


def test_a_storm_is_held_then_tested_with_a_trial() -> None:
    storm = BUILT_IN.storm
    many = StormState("SYS.5 on orion", resubmits=storm.most)
    assert (with_facts(storm=many).held_by, with_facts(storm=many).rule) == ("storm", "retry-storm limit")
    failing = StormState("SYS.5 on orion", resubmits=8, helped=2, failed=6)
    assert with_facts(storm=failing).held_by == "storm"
    assert with_facts(storm=replace(failing, helped=8, failed=2)).held_by is None
    just_held = replace(many, held_since=NOW - timedelta(minutes=1))
    assert with_facts(storm=just_held).held_by == "storm"
    rested = replace(many, held_since=NOW - timedelta(minutes=storm.half_open_minutes))
    assert with_facts(storm=rested).decision == "resubmit_after"
    assert with_facts(storm=replace(rested, trial=True)).held_by == "storm"


def test_clusters_and_users_have_rate_limits() -> None:
    limits = BUILT_IN.limits
    assert with_facts(rate=ActionRate(limits.rate_per_cluster, 0)).held_by == "rate"
    assert with_facts(rate=ActionRate(0, limits.rate_per_user)).held_by == "rate"
    assert with_facts(rate=ActionRate(limits.rate_per_cluster - 1, limits.rate_per_user - 1)).held_by is None
    assert ALONE.rate == ActionRate()
