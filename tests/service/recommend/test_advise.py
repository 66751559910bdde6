"""From verdict to advice: which decision, which mitigations, in which words."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from classifiers import taxonomy
from classifiers.case import Evidence, JobFacts, Progress, Suspect, Verdict
from classifiers.taxonomy import RetryOutlook
from service.events import Status
from service.recommend import policy
from service.recommend.advise import advise
from service.recommend.facts import Facts, History
from service.recommend.ranking import posterior
from service.recommend.rules.outlook import matches

LOST_GPU = Verdict(
    side="hardware",
    cause="HW.GPU.2",
    cause_top=("HW.GPU.2",),
    category=None,
    symptom=None,
    symptom_top=(),
    platform_symptom="crash",
    confidence=0.97,
    abstained=False,
    retry_outlook="helps_elsewhere",
    fingerprint="1:x",
    explanation="",
    model="m",
    rules="r",
    suspect=Suspect(node="gpu018"),
)
ALONE = Facts.alone(datetime(2026, 11, 1, 3, 0, tzinfo=UTC))
FAILED = JobFacts(status="failed", nodes=("gpu017", "gpu018.orion"))


def test_a_lost_gpu_is_resubmitted_without_its_node() -> None:
    advice = advise(LOST_GPU, FAILED, ALONE, policy.built_in())
    assert (advice.decision, advice.resubmit, advice.exclude_nodes) == ("resubmit_now", True, ("gpu018.orion",))
    assert advice.mitigations[0].code == "M1"
    assert advice.mitigations[0].text == "Resubmit without gpu018.orion."


def test_a_known_checkpoint_is_named() -> None:
    advice = advise(replace(LOST_GPU, progress=Progress(checkpoint="/ckpt/41200")), FAILED, ALONE, policy.built_in())
    assert advice.mitigations[0].text == "Resubmit without gpu018.orion, from /ckpt/41200."


def test_only_a_node_of_the_job_is_left_out() -> None:
    stranger = replace(LOST_GPU, suspect=Suspect(node="login2"))
    assert advise(stranger, FAILED, ALONE, policy.built_in()).exclude_nodes == ()
    alone = JobFacts(status="failed", nodes=("gpu3",))
    assert advise(replace(LOST_GPU, suspect=None), alone, ALONE, policy.built_in()).exclude_nodes == ("gpu3",)
    passing = replace(LOST_GPU, retry_outlook="helps")
    assert advise(passing, FAILED, ALONE, policy.built_in()).exclude_nodes == ()


def test_a_typo_is_never_resubmitted_and_the_line_to_look_at_is_named() -> None:
    verdict = replace(
        LOST_GPU,
        side="user",
        cause="USER.1",
        category="EE.2",
        retry_outlook="futile",
        suspect=None,
        evidence=(Evidence("ModuleNotFoundError: No module named 'nmupy'", "initiating"),),
    )
    advice = advise(verdict, FAILED, ALONE, policy.built_in())
    assert (advice.decision, advice.resubmit) == ("stop", False)
    assert advice.mitigations[0].code == "M2"
    assert "No module named 'nmupy'" in advice.mitigations[0].text
    assert all(mitigation.code != "M1" for mitigation in advice.mitigations)


def test_the_reasons_name_every_rule_asked_up_to_the_one_that_decided() -> None:
    advice = advise(LOST_GPU, FAILED, ALONE, policy.built_in())
    assert advice.reasons[0] == "cancelled: does not apply"
    assert advice.rule == "one bad node"
    assert any(reason.startswith("one bad node: ") for reason in advice.reasons)


def test_local_outcomes_outweigh_the_papers_in_the_end() -> None:
    before = posterior(LOST_GPU, History(), 20)
    after = posterior(LOST_GPU, History({"M8": 500}), 20)
    assert before["M1"] > before["M8"]
    assert after["M8"] > after["M1"]
    assert abs(sum(after.values()) - 1) < 1e-9


def test_a_pattern_matches_what_is_below_it_only() -> None:
    assert matches("HW.GPU.1", ("HW.*",))
    assert not matches("HWX.1", ("HW.*",))
    assert not matches(None, ("HW.*",))


AXES = taxonomy.load()
VERDICTS = st.builds(
    lambda cause, category, symptom, outlook, abstained, node: replace(
        LOST_GPU,
        cause=cause,
        side=AXES.side_of(cause),
        category=category,
        symptom=symptom,
        retry_outlook=outlook,
        abstained=abstained,
        suspect=Suspect(node=node),
    ),
    st.sampled_from(sorted(AXES.causes)),
    st.none() | st.sampled_from(sorted(AXES.categories)),
    st.none() | st.sampled_from(sorted(AXES.symptoms)),
    st.sampled_from(get_args(RetryOutlook)),
    st.booleans(),
    st.none() | st.just("gpu1"),
)


@given(VERDICTS, st.sampled_from([status.value for status in Status]))
def test_nothing_futile_cancelled_abstained_or_of_the_user_is_ever_automatic(verdict: Verdict, status: str) -> None:
    advice = advise(verdict, JobFacts(status=status), ALONE, policy.built_in())
    if (
        verdict.abstained
        or verdict.side == "user"
        or verdict.retry_outlook in {"futile", "after_repair"}
        or status == "cancelled"
    ):
        assert not advice.resubmit
    assert advice.resubmit == (advice.decision in {"resubmit_now", "resubmit_after"})
    assert advice.mitigations
    assert all(0 < mitigation.score <= 1 for mitigation in advice.mitigations)
    assert advice == advise(verdict, JobFacts(status=status), ALONE, policy.built_in())
