"""Replay of stored decisions under another policy."""

import json
from dataclasses import replace
from datetime import timedelta

from service.contracts.advice import Outcome
from service.recommend import policy, replay, replay_report
from service.recommend.advise import advise
from service.recommend.facts import ActionRate, Facts, Lineage, OptIn, PastResubmit, StormState
from service.recommend.recent_activity import storm_key
from service.recommend.replay import PastDecision
from tests.service.recommend.sample_facts import ALONE, NOW, PASSING, TYPO, ran

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
    assert (found.more, found.fewer) == (1, 0)  # in shadow mode nothing is resubmitted
    assert (found.shown[0].rule, found.shown[0].reason) == (
        "opt-in",
        "opted in (policy)",
    )


def test_parts_add_up_to_the_whole() -> None:
    history = [past(number, outcome="failed_same") for number in range(6)]
    whole = replay.compare(history, STRICT)
    parts = replay.Replay(STRICT)
    parts.add(history[:3])
    parts.add(history[3:])
    assert replay_report.as_json(parts.found) == replay_report.as_json(whole)


def shadow(number: int, minutes: float, *, lineage: str | None = None, user: str = "ana") -> PastDecision:
    """A failure in shadow mode: nothing was resubmitted, so the stored facts count nothing."""
    now = NOW + timedelta(minutes=minutes)
    facts = replace(
        ALONE,
        now=now,
        opt_in=OptIn("shadow", "nobody opted in"),
        lineage=Lineage(lineage or f"l{number}", first_at=NOW),
        storm=StormState(key=storm_key("orion", PASSING.cause, "host:nfs")),
    )
    made = past(number, facts)
    return replace(made, at=now, job=replace(made.job, user=user))


def opened(limits: str) -> policy.Policy:
    return policy.parse(f'version = "open"\n[opt_in]\ndefault = "auto"\n{limits}')


def test_added_resubmits_count_towards_the_rate_limits() -> None:
    history = [shadow(number, number) for number in range(10)]
    found = replay.compare(history, opened("[limits]\nrate_per_user = 4\n"))
    assert (found.more, found.limited) == (4, {"rate": 6})
    assert found.shown[-1].after == "hold (act)"
    assert found.shown[-1].rule == "rate"
    assert "4" in found.shown[-1].reason
    others = [replace(one, job=replace(one.job, user=f"u{one.failure_id}")) for one in history]
    assert replay.compare(others, opened("[limits]\nrate_per_user = 4\n")).more == 10
    later = [shadow(number, number * 20) for number in range(10)]  # three an hour
    assert replay.compare(later, opened("[limits]\nrate_per_user = 4\n")).more == 10


def test_added_resubmits_close_the_retry_storm_limit() -> None:
    history = [shadow(number, number / 10) for number in range(8)]
    settings = "[storm]\nmost = 3\nhalf_open_minutes = 15\n"
    found = replay.compare(history, opened(settings))
    assert (found.more, found.limited) == (3, {"retry-storm limit": 5})
    trial = replay.compare([*history, shadow(8, 20), shadow(9, 20.1)], opened(settings))
    assert (trial.more, trial.limited) == (4, {"retry-storm limit": 6})


def test_added_resubmits_count_towards_the_limit_of_their_lineage() -> None:
    history = [shadow(number, number * 60 * 30, lineage="same") for number in range(4)]
    found = replay.compare(history, opened("[limits]\ninfra_per_lineage = 2\ntotal_hours = 10000\n"))
    assert (found.more, found.kinds["resubmit_after (would_have)", "stop"]) == (2, 2)


def test_omitted_resubmits_free_the_limits() -> None:
    """The first resubmit happened and counted; a policy that omits it has room for the next one."""
    settings = '[limits]\nrate_per_user = 1\n[[rule]]\nname = "not this"\nwhen = {{ cause = ["{}"] }}\n'
    settings += 'decision = "ask"\nsays = "no"\nsource = "test"\n'
    first = past(1, replace(ALONE, lineage=Lineage("a", first_at=NOW)), "failed_same")
    first = replace(first, job=replace(first.job, user="ana"))
    full = replace(ALONE, now=NOW + timedelta(minutes=30), rate=ActionRate(1, 1), lineage=Lineage("b", first_at=NOW))
    other = replace(PASSING, cause="SYS.1")
    held = replace(past(2, full, verdict=other), job=first.job, decision="hold", mode="act")
    found = replay.compare([first, held], policy.parse('version = "x"\n' + settings.format(PASSING.cause)))
    assert (found.fewer, found.more) == (1, 1)


def test_a_failure_with_a_revised_verdict_is_resubmitted_once() -> None:
    twice = [shadow(1, 0), shadow(1, 1), shadow(2, 2)]
    assert replay.compare(twice, opened("[limits]\nrate_per_user = 2\n")).limited == {}


def test_the_shown_reason_is_that_of_the_deciding_rule() -> None:
    found = replay.compare([past(1, outcome="failed_same")], STRICT)
    assert found.shown[0].rule == "resubmits of this job"
    assert f"{found.shown[0].rule}: {found.shown[0].reason}" in found.shown[0].reasons
    text = replay_report.as_text(found)
    assert f"{found.shown[0].rule}: {found.shown[0].reason}" in text
    asked = replace(past(2), decision="ask", mode="advise")
    [change] = replay.compare([asked], BUILT_IN).shown
    assert change.rule in {rule.name for rule in BUILT_IN.rule}


def test_the_comparison_is_shown_as_text_json_and_html() -> None:
    found = replay.compare([past(1, outcome="failed_same"), past(2)], STRICT)
    text = replay_report.as_text(found)
    assert "1: 8.0 GPU-hours saved" in text
    assert "resubmit_after (act) → stop" in text
    result = json.loads(json.dumps(replay_report.as_json(found)))
    assert result["unknown"] == {"more": 0, "fewer": 1}
    page = replay_report.as_html(replace_cluster(found))
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def replace_cluster(found: replay.ReplayComparison) -> replay.ReplayComparison:
    found.shown = [replace(one, cluster="<b>") for one in found.shown]
    return found
