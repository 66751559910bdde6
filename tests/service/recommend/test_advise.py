"""Advice for verdicts: decision, mitigations and texts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings

from classifiers.contracts import Evidence, JobFacts, Progress, Suspect, Verdict
from classifiers.taxonomy import Side
from service.recommend import policy
from service.recommend.advise import advise
from service.recommend.facts import Facts, History, KnownCheckpoint, Lineage, OpenIncident, OptIn, SwitchState
from service.recommend.ranking import posterior
from tests.service.recommend.sample_facts import ALONE, FAILED, JOBS, LOST_GPU, NOW, PASSING, TYPO, VERDICTS, ran

BUILT_IN = policy.built_in()


def test_a_lost_gpu_is_resubmitted_at_once_without_its_node() -> None:
    advice = advise(LOST_GPU, FAILED, ALONE, BUILT_IN)
    assert (advice.decision, advice.resubmit, advice.exclude_nodes) == ("resubmit_now", True, ("gpu018.orion",))
    assert advice.mitigations[0].code == "M1"
    assert advice.mitigations[0].text == "Resubmit without gpu018.orion."
    assert advice.action is not None
    assert (advice.action.plan, advice.action.exclude_nodes, advice.action.not_before) == (
        "elsewhere",
        ("gpu018.orion",),
        None,
    )
    assert advice.ask_whom == "the operators of gpu018.orion"


def test_resubmit_means_the_same_under_every_policy() -> None:
    cautious = policy.parse(
        'version = "1"\n[[rule]]\nname = "none"\ndecision = "stop"\nsays = "None is."\nsource = "site"\n',
        "p",
    )
    bold = policy.parse(
        'version = "1"\n[[rule]]\nname = "all"\ndecision = "resubmit_now"\nsays = "All is."\nsource = "site"\n', "p"
    )
    assert [advise(LOST_GPU, FAILED, ALONE, one).decision for one in (cautious, bold)] == ["stop", "resubmit_now"]
    for one in (BUILT_IN, cautious, bold):
        assert advise(LOST_GPU, FAILED, ALONE, one).resubmit
        assert not advise(TYPO, FAILED, ALONE, one).resubmit


def test_a_failure_without_a_log_asks_for_the_log() -> None:
    ended = (Evidence("status=failed exit_code=1", "context", None, None, "scheduler", None),)
    verdict = replace(TYPO, abstained=True, evidence=ended, missing=("no log was given",), own_frame=None)
    [advised] = [one for one in advise(verdict, FAILED, ALONE, BUILT_IN).mitigations if one.code == "M2"]
    assert advised.text.startswith("Find the log first (no log was given).")


@pytest.mark.parametrize(
    ("limit", "how"),
    [
        (7200, "its time limit of 2 hours"),
        (3600, "its time limit of 1 hour"),
        (637, "its time limit of 10.6 minutes"),
        (None, "its time limit"),
    ],
)
def test_advice_at_the_time_limit_names_it_instead_of_the_scheduler_s_line(limit: int | None, how: str) -> None:
    told = (
        Evidence("slurmstepd: error: *** CANCELLED DUE TO TIME LIMIT ***", "initiating", signature="slurm.time-limit"),
    )
    verdict = replace(TYPO, cause="USER.2", category=None, evidence=told)

    def change(verdict: Verdict, status: str = "timeout") -> str:
        job = JobFacts(status=status, time_limit_s=limit)
        return next(one.text for one in advise(verdict, job, ALONE, BUILT_IN).mitigations if one.code == "M2")

    longer = f"Let the job do less in one run and save checkpoints, or request a longer time limit: it reached {how}."
    assert change(verdict) == longer
    assert (
        change(replace(verdict, own_frame="train.py:9"))
        == "Change the code or its configuration. Look first at: train.py:9"
    )
    assert change(verdict, "failed") == "Change the code or its configuration."
    other = (Evidence("sbatch: error: QOSMaxSubmitJobPerUserLimit", "initiating", signature="slurm.qos-limit"),)
    assert change(replace(verdict, evidence=other), "failed").endswith(f"Look first at: {other[0].text}")


def test_no_longer_limit_is_advised_where_a_dump_shows_that_the_job_hung() -> None:
    hung = Evidence("py-spy: rank 2 is in read (tarfile.py:690); 3 other ranks wait", "initiating", 2, stream="py_spy")
    verdict = replace(TYPO, category=None, evidence=(hung,), own_frame=None)
    advised = [one.text for one in advise(verdict, JobFacts(status="timeout"), ALONE, BUILT_IN).mitigations]
    assert advised[0] == f"Change the code or its configuration. Look first at: {hung.text}"


def test_advice_on_a_failure_of_the_user_names_no_node() -> None:
    verdict = replace(TYPO, suspect=Suspect(node="gpu018", gpu=1), retry_outlook="helps_elsewhere")
    advice = advise(verdict, FAILED, ALONE, BUILT_IN)
    assert advice.exclude_nodes == ()
    assert not any("gpu018" in text for text in (*(one.text for one in advice.mitigations), *advice.reasons))


def test_a_known_checkpoint_is_named_and_resumed_from() -> None:
    advice = advise(replace(LOST_GPU, progress=Progress(checkpoint="/ckpt/41200")), FAILED, ALONE, BUILT_IN)
    assert advice.mitigations[0].text == "Resubmit without gpu018.orion, from /ckpt/41200."
    assert advice.action is not None
    assert advice.action.resume_from == "/ckpt/41200"
    result = replace(ALONE, checkpoint=KnownCheckpoint("s3://ckpt/7"))
    advice = advise(LOST_GPU, FAILED, result, BUILT_IN)
    assert advice.action is not None
    assert advice.action.resume_from == "s3://ckpt/7"


def test_a_user_error_is_never_resubmitted_and_its_line_is_named() -> None:
    verdict = replace(TYPO, evidence=(Evidence("ModuleNotFoundError: No module named 'nmupy'", "initiating"),))
    advice = advise(verdict, replace(FAILED, user="alice"), ALONE, BUILT_IN)
    assert (advice.decision, advice.resubmit, advice.action) == ("stop", False, None)
    assert advice.mitigations[0].code == "M2"
    assert "No module named 'nmupy'" in advice.mitigations[0].text
    assert all(mitigation.code != "M1" for mitigation in advice.mitigations)
    assert advice.ask_whom == "the job's owner, alice"


def test_the_reasons_name_every_rule_and_the_deciding_one() -> None:
    advice = advise(LOST_GPU, FAILED, ALONE, BUILT_IN)
    assert advice.reasons[0] == "cancelled: does not apply"
    assert advice.rule == "one bad node"
    assert [one.name for one in advice.evaluated_rules if one.decided] == ["one bad node"]
    assert advice.reasons[-1] == "kill switch: automation is on"
    stopped = advise(TYPO, FAILED, ALONE, BUILT_IN)
    assert stopped.reasons[-1].startswith("user side: ")


def test_a_job_without_opt_in_is_recorded_in_shadow_mode() -> None:
    advice = advise(LOST_GPU, FAILED, replace(ALONE, opt_in=OptIn()), BUILT_IN)
    assert (advice.decision, advice.mode) == ("resubmit_now", "would_have")
    assert advice.resubmit  # as if it had opted in


def test_the_kill_switch_wins() -> None:
    stopped = replace(ALONE, switch=SwitchState(stopped=True, by="root", reason="storm"))
    advice = advise(LOST_GPU, FAILED, stopped, BUILT_IN)
    assert advice.mode == "advise"
    assert advice.reasons[-1] == "kill switch: automation is stopped (root: storm)"


def test_more_memory_is_asked_for_after_the_kernel_killed_the_job() -> None:
    verdict = replace(TYPO, category="DL.4")
    job = replace(FAILED, status="out_of_memory")
    advice = advise(verdict, job, replace(ALONE, memory_requested=64 * 2**30), BUILT_IN)
    assert advice.changes == {"memory_bytes": 96 * 2**30}
    assert advice.mitigations[0].code == "M10"
    assert advice.mitigations[0].text == "Request 96 GiB of memory instead of 64 GiB, or use less."
    assert advise(verdict, job, ALONE, BUILT_IN).changes == {}  # the request is unknown


def test_a_longer_time_limit_is_asked_for_where_the_job_got_on() -> None:
    verdict = replace(TYPO, category=None, progress=Progress(step=400, checkpoint="/c/400"))
    job = JobFacts(status="timeout", time_limit_s=7200)
    advice = advise(verdict, job, ALONE, BUILT_IN)
    assert advice.changes == {"time_limit_s": 10800}
    assert advice.mitigations[0].text == "Request a time limit of 3 hours instead of 2 hours, and resume from /c/400."
    others: tuple[dict[str, Any], ...] = ({"progress": None}, {"category": "GC.1"}, {"own_frame": "train.py:9"})
    for changes in others:
        assert advise(replace(verdict, **changes), job, ALONE, BUILT_IN).changes == {}


def test_a_smaller_batch_is_advised_where_the_device_ran_out_of_memory() -> None:
    verdict = replace(TYPO, category="DL.1", evidence=(Evidence("CUDA out of memory", "initiating"),))
    advice = advise(verdict, FAILED, ALONE, BUILT_IN)
    assert advice.changes == {"batch_factor": 0.5}
    assert "(to 50%" in advice.mitigations[0].text


@pytest.mark.parametrize(
    ("symptom", "rank", "side", "fix"),
    [
        ("B.2", 3, "user", "fix communication configuration"),
        ("B.2", 0, "user", None),  # of a single process
        ("D.1.2", 0, "user", "fix memory/core setting"),
        ("D.1.7", 3, "user", None),  # most often another mitigation fixed it
        ("D.1.11", 3, "user", None),  # nothing in common
        ("B.2", 3, "system", None),
    ],
)
def test_the_papers_fix_pattern_is_named_where_it_fits(symptom: str, rank: int, side: Side, fix: str | None) -> None:
    line = Evidence("the job stopped", "initiating", rank)
    verdict = replace(
        TYPO, side=side, cause="USER.1" if side == "user" else "SYS.1", category=None, symptom=symptom,
        symptom_top=(symptom,), evidence=(line,), own_frame=None,
    )  # fmt: skip
    named = {
        one.text.partition("most often: ")[2].partition(")")[0]
        for one in advise(verdict, FAILED, ALONE, BUILT_IN).mitigations
        if "most often: " in one.text
    }
    assert named == ({fix} if fix else set())


def test_a_job_held_for_a_repair_is_released_with_its_incident() -> None:
    verdict = replace(PASSING, cause="SYS.1", retry_outlook="after_repair")
    alone = advise(verdict, FAILED, ALONE, BUILT_IN)
    assert (alone.decision, alone.held_by, alone.resubmit) == ("hold", "repair", False)
    assert alone.action is not None
    incident = OpenIncident(3, "filesystem:/lustre", NOW, jobs=30, users=9)
    held = advise(verdict, FAILED, replace(ALONE, incident=incident), BUILT_IN)
    assert (held.decision, held.held_by, held.incident) == ("hold", "incident", 3)
    turn = NOW + timedelta(seconds=40)
    free = advise(verdict, FAILED, replace(ALONE, incident=replace(incident, turn_at=turn)), BUILT_IN)
    assert (free.decision, free.mode, free.rule) == ("resubmit_after", "act", "incident")
    assert free.action is not None
    assert free.action.not_before == turn
    assert not free.resubmit  # alone it would have been held


def test_a_platform_fault_that_one_node_alone_shows_is_tried_elsewhere() -> None:
    event = Evidence("gpu017: slurmd has no access to its spool folder", "initiating", node="gpu017", stream="node")
    verdict = replace(
        PASSING, cause="SYS.1", retry_outlook="after_repair", suspect=Suspect(node="gpu017"), evidence=(event,)
    )
    advice = advise(verdict, FAILED, ALONE, BUILT_IN)
    assert (advice.decision, advice.exclude_nodes) == ("resubmit_now", ("gpu017",))
    on_one = replace(FAILED, nodes=("gpu017",))  # all a job's evidence comes from its only node: that binds nothing
    assert advise(verdict, on_one, ALONE, BUILT_IN).decision == "hold"
    first_rank = Evidence("ExpiredToken: the provided token has expired", "initiating", rank=0, node="gpu017")
    in_log_alone = replace(verdict, evidence=(first_rank,))  # the other ranks ended before they met it
    assert advise(in_log_alone, FAILED, ALONE, BUILT_IN).decision == "hold"


@pytest.mark.parametrize(
    ("scheduler", "kind"), [("slurm", "requeue"), ("kubernetes", "submit"), ("ray", "submit"), (None, "requeue")]
)
def test_a_job_of_kubernetes_or_ray_is_submitted_as_a_new_job(scheduler: str | None, kind: str) -> None:
    advice = advise(LOST_GPU, replace(FAILED, scheduler=scheduler), ALONE, BUILT_IN)
    assert advice.action is not None
    assert advice.action.kind == kind


def test_local_outcomes_outweigh_the_papers_in_the_end() -> None:
    before = posterior(LOST_GPU, History(), 20)
    after = posterior(LOST_GPU, History({"M8": 500}), 20)
    assert before["M1"] > before["M8"]
    assert after["M8"] > after["M1"]
    assert abs(sum(after.values()) - 1) < 1e-9


@settings(deadline=None)
@given(VERDICTS, JOBS)
def test_futile_cancelled_undecided_and_user_failures_are_not_resubmitted(verdict: Verdict, job: JobFacts) -> None:
    advice = advise(verdict, job, ALONE, BUILT_IN)
    if (
        verdict.abstained
        or verdict.disputed
        or verdict.side == "user"
        or verdict.retry_outlook == "futile"
        or job.status == "cancelled"
    ):
        assert not advice.resubmit
    assert advice.mitigations
    assert all(0 < mitigation.score <= 1 for mitigation in advice.mitigations)


def test_history_does_not_change_the_result_for_the_event_alone() -> None:
    tired = Facts(NOW, lineage=Lineage("x", attempts=9, same_fingerprint_without_progress=5), opt_in=OptIn("auto"))
    advice = advise(LOST_GPU, ran(1), tired, BUILT_IN)
    assert (advice.decision, advice.resubmit) == ("stop", True)
