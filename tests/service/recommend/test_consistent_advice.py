"""Decision and mitigations, which are shown together, are one consistent piece of advice."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cache
from itertools import product
from typing import get_args

import pytest

from classifiers.contracts import Progress, Suspect, Verdict
from classifiers.taxonomy import RetryOutlook
from service.contracts.advice import Advice
from service.recommend.advise import advise
from service.recommend.facts import ActionRate, History, Lineage, OpenIncident, PastResubmit, StormState, Suspicion
from service.recommend.policy import built_in
from service.web.pages import display_names
from service.web.pages.failure.short_advice import advice_sentences
from tests.service.recommend.sample_facts import ALONE, AXES, LOST_GPU, NOW, ran

FACTS = {
    "alone": ALONE,
    "incident": replace(ALONE, incident=OpenIncident(3, "nfs", NOW, 9, 4)),
    "turn": replace(ALONE, incident=OpenIncident(3, "nfs", NOW, 9, 4, turn_at=NOW + timedelta(minutes=1))),
    "storm": replace(ALONE, storm=StormState("x", resubmits=900)),
    "rate": replace(ALONE, rate=ActionRate(cluster=900)),
    "same failure": replace(ALONE, lineage=Lineage(same_fingerprint_without_progress=9)),
    "window": replace(ALONE, lineage=Lineage(resubmits=(PastResubmit(NOW, "system"),) * 5)),
    "suspicion": replace(ALONE, suspicion={"gpu2": Suspicion(9.0, 8.0, 12.0)}),
}
FLAGS = ("", "abstained", "disputed", "uncorroborated")
ORDERS = ("Change ", "Repeat ", "Return ", "Report ", "Request ", "Terminate ", "Take ", "Ask ", "Reduce ")
# No mitigation may begin with one of these words after such a decision.
REFUSED = {
    "stop": ("Resubmit ", "Resubmit,", "Wait"),
    "ask": ("Resubmit ", "Resubmit,", "Wait"),
    "hold": ("Resubmit now", "Resubmit after a pause", "Wait", "Change ", "Repeat "),
    "resubmit_now": ("Resubmit after", "Resubmit once", "Wait"),
    "resubmit_after": ("Resubmit now", "Resubmit once"),
}


def doubted(verdict: Verdict, flag: str) -> Verdict:
    """The verdict with one of `FLAGS`."""
    flags = {name: name == flag for name in FLAGS[1:]}
    return replace(
        verdict,
        abstained=flags["abstained"],
        disputed=flags["disputed"],
        uncorroborated=flags["uncorroborated"],
    )


def _verdicts() -> Iterator[tuple[Advice, str, str, str]]:
    """The advice on every cause, category, outlook, doubt and place, with what is known of other jobs."""
    policy = built_in()
    plain = [(None, ""), ("gpu1", "/ckpt/7")]
    for cause, outlook, flag, status in product(AXES.causes, get_args(RetryOutlook), FLAGS, ("failed", "cancelled")):
        for category, (node, checkpoint) in product((None, *AXES.categories), plain):
            verdict = replace(
                LOST_GPU,
                cause=cause,
                side=AXES.side_of(cause),
                category=category,
                retry_outlook=outlook,
                suspect=Suspect(node=node),
                progress=Progress(checkpoint=checkpoint or None),
            )
            job = replace(ran(3, nodes=("gpu1", "gpu2", "gpu3")), status=status)
            # What is known of other jobs changes the decision only where the job could be resubmitted.
            known = FACTS if not flag and status == "failed" and category is None else {"alone": ALONE}
            for facts in known.values():
                yield advise(doubted(verdict, flag), job, facts, policy), outlook, flag, status


@cache
def shown() -> frozenset[tuple[str, str | None, str, str, str, str]]:
    """All that is shown together: decision, what holds it, outlook, doubt, status, and one mitigation."""
    return frozenset(
        (advice.decision, advice.held_by, outlook, flag, status, f"{number}{one.code} {one.text}")
        for advice, outlook, flag, status in _verdicts()
        for number, one in enumerate(advice.mitigations)
    )


@pytest.mark.slow
def test_every_decision_is_among_them() -> None:
    assert {(decision, held_by) for decision, held_by, *_ in shown()} == {
        ("resubmit_now", None),
        ("resubmit_after", None),
        ("stop", None),
        ("ask", None),
        *(("hold", held_by) for held_by in ("repair", "incident", "storm", "rate", "window")),
    }
    assert {text.split(" ")[0][1:] for *_, text in shown()} == {f"M{number}" for number in range(1, 11)}


@pytest.mark.parametrize("decision", REFUSED)
def test_no_mitigation_contradicts_the_decision(decision: str) -> None:
    wrong = [
        one
        for one in shown()
        if one[0] == decision
        # "Resubmit once the repair is done" and "Resubmit when the hold has ended" are what a hold waits for.
        and one[-1].partition(" ")[2].startswith(REFUSED[decision])
    ]
    assert not wrong, wrong[:5]


def test_what_is_in_doubt_is_no_order() -> None:
    doubtful = [one for one in shown() if one[3] or one[4] == "cancelled"]
    wrong = [one for one in doubtful if one[-1].partition(" ")[2].startswith(ORDERS)]
    assert not wrong, wrong[:5]


def test_the_short_advice_names_what_a_hold_waits_for() -> None:
    words = {
        held_by: display_names.decision("hold", held_by=held_by)
        for decision, held_by, *_ in shown()
        if decision == "hold"
    }
    assert words == {
        "repair": "Hold until it is repaired",
        "incident": "Hold until the incident is closed",
        "storm": "Hold until the retry storm is over",
        "rate": "Hold until the rate limit allows it",
        "window": "Hold until the limit for this job allows it",
    }
    for decision, held_by, _, _, status, text in shown():
        first, rest = advice_sentences(
            display_names.decision(decision, held_by=held_by, status=status), text.partition(" ")[2]
        )
        if not text.startswith("0"):
            continue
        assert first.count("Resubmit") + first.count("resubmit") <= 1, first
        assert not (decision == "resubmit_now" and ("pause" in first or "once" in first)), first
        assert not (held_by not in (None, "repair") and "repair" in first), first
        assert rest != "Resubmit now."


def test_what_worked_before_is_said_of_the_mitigation_itself_only() -> None:
    """Not of "Find out first why ...": nobody resolved a failure by this."""
    worked = replace(ALONE, history=History({f"M{number}": 3 for number in range(1, 11)}))
    for outlook, flag, status in product(get_args(RetryOutlook), FLAGS, ("failed", "cancelled")):
        for cause in AXES.causes:
            verdict = replace(LOST_GPU, cause=cause, side=AXES.side_of(cause), retry_outlook=outlook)
            verdict = doubted(verdict, flag)
            for one in advise(verdict, replace(ran(3), status=status), worked, built_in()).mitigations:
                if "This resolved" in one.text:
                    assert not one.text.startswith(("Find out", "Look ", "Check ", "Nothing ", "The service")), one.text
                    assert "would fail again" not in one.text


def test_a_cancelled_job_need_not_be_changed() -> None:
    assert display_names.decision("stop", status="cancelled") == "Not resubmitted"
    assert display_names.decision("stop", status="failed") == "Do not resubmit unchanged"
