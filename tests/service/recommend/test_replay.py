"""Replay of stored decisions under another policy."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from service.contracts.resubmission import Outcome
from service.recommend import policy, replay, replay_report
from service.recommend.advise import advise
from service.recommend.facts import Facts, Lineage, OptIn, PastResubmit
from service.recommend.replay import PastDecision
from tests.service.recommend.worlds import ALONE, NOW, PASSING, TYPO, ran

BUILT_IN = policy.built_in()
STRICT = policy.parse('version = "strict"\n[limits]\ninfra_per_lineage = 1\n')
ONE_RESUBMIT = replace(ALONE, lineage=Lineage("a", 2, (PastResubmit(NOW - timedelta(days=3), "system"),)))


def past(number: int = 1, facts: Facts = ONE_RESUBMIT, outcome: Outcome | None = None, **more: object) -> PastDecision:
    verdict = more.pop("verdict", PASSING)
    job = ran(1)
    advice = advise(verdict, job, facts, BUILT_IN)  # type: ignore[arg-type]
    return PastDecision(
        failure_id=number,
        at=NOW + timedelta(hours=number),
        cluster="orion",
        queue=None,
        team=None,
        verdict=verdict,  # type: ignore[arg-type]
        job=job,
        facts=facts,
        decision=advice.decision,
        mode=advice.mode,
        made=outcome is not None,
        outcome=outcome,
        gpu_hours=8.0 if outcome else None,
        rescued=5.0 if outcome == "succeeded" else 0.0,
        **more,
    )


def test_the_same_policy_changes_nothing() -> None:
    found = replay.compare([past(), past(2, verdict=TYPO), past(3, ALONE)], BUILT_IN)
    assert (found.decisions, found.changed, found.shown) == (3, 0, [])


def test_recorded_outcomes_give_gain_and_loss_of_dropped_resubmits() -> None:
    history = [past(1, outcome="failed_same"), past(2, outcome="succeeded"), past(3, outcome="unknown"), past(4)]
    found = replay.compare([*history, past(5, verdict=TYPO)], STRICT)
    assert (found.changed, found.fewer, found.more) == (4, 4, 0)
    assert (found.failed_avoided, found.saved_gpu_hours) == (1, 8.0)
    assert (found.helped_lost, found.lost_gpu_hours) == (1, 5.0)
    assert found.unknown_fewer == 2
    assert found.kinds == {("resubmit_after (act)", "stop"): 4}
    assert "resubmits of this job" in found.shown[0].reasons[-1]


def test_additional_resubmits_count_as_unknown() -> None:
    full = replace(ALONE, lineage=Lineage("a", 9, (PastResubmit(NOW - timedelta(days=3), "system"),) * 8))
    wider = policy.parse('version = "wider"\n[limits]\ninfra_per_lineage = 20\n')
    found = replay.compare([past(facts=full)], wider)
    assert (found.more, found.unknown_more, found.saved_gpu_hours, found.lost_gpu_hours) == (1, 1, 0.0, 0.0)


def test_consent_of_the_other_policy_applies_and_labels_stay() -> None:
    opened = policy.parse('version = "open"\n[[override]]\ncluster = "orion"\nopt_in.default = "auto"\n')
    shadow = past(facts=replace(ALONE, opt_in=OptIn("shadow", "nobody opted in")))
    labelled = past(2, replace(ALONE, opt_in=OptIn("never", "label faultline/resubmit=never")))
    found = replay.compare([shadow, labelled], opened)
    assert found.kinds == {("resubmit_after (would_have)", "resubmit_after (act)"): 1}
    assert (found.more, found.fewer) == (0, 0)  # both would resubmit; one only records it


def test_parts_add_up_to_the_whole() -> None:
    history = [past(number, outcome="failed_same") for number in range(6)]
    whole = replay.compare(history, STRICT)
    parts = replay.merged([replay.compare(history[3:], STRICT), replay.compare(history[:3], STRICT)])
    assert replay_report.as_json(parts) == replay_report.as_json(whole)
    with pytest.raises(ValueError, match="nothing"):
        replay.merged([])


def test_the_comparison_is_shown_as_text_json_and_html() -> None:
    found = replay.compare([past(1, outcome="failed_same"), past(2)], STRICT)
    text = replay_report.as_text(found)
    assert "1: 8.0 GPU-hours saved" in text
    assert "resubmit_after (act) → stop" in text
    told = json.loads(json.dumps(replay_report.as_json(found)))
    assert told["unknown"] == {"more": 0, "fewer": 1}
    page = replay_report.as_html(replace_cluster(found))
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def replace_cluster(found: replay.ReplayComparison) -> replay.ReplayComparison:
    found.shown = [replace(one, cluster="<b>") for one in found.shown]
    return found
