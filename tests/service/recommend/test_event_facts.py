"""The facts that the event contains."""

from typing import Any

import pytest

from service.contracts.event import from_object
from service.recommend import event_facts, policy
from service.recommend.facts import OptIn
from tests.service.recommend.sample_facts import NOW

BUILT_IN = policy.built_in()
EVENT = {"cluster": "orion", "job_id": "17", "status": "failed", "ended_at": "2026-11-01T03:00:00Z"}


def facts(**fields: Any) -> Any:
    return event_facts.facts_of(from_object({**EVENT, **fields}), NOW, BUILT_IN)


@pytest.mark.parametrize(
    ("label", "mode"),
    [("auto", "auto"), (" Auto ", "auto"), ("advise", "advise"), ("never", "never"), ("yes please", "advise")],
)
def test_the_label_of_a_job_decides_its_opt_in(label: str, mode: str) -> None:
    assert facts(labels={"faultline/resubmit": label}).opt_in.mode == mode


def test_jobs_without_a_label_are_in_shadow_mode_by_default() -> None:
    assert facts().opt_in == OptIn("shadow", "nobody opted in")


def test_a_policy_may_opt_in_a_queue_and_leave_labels_out() -> None:
    own = policy.parse('version = "1"\n[opt_in]\nlabels = false\n[[override]]\nqueue = "q"\nopt_in.default = "auto"\n')
    assert event_facts.opt_in({}, own.effective(queue="q")).mode == "auto"
    assert event_facts.opt_in({"faultline/resubmit": "auto"}, own).mode == "shadow"
    assert event_facts.opt_in({"faultline/resubmit": "never"}, own.effective(queue="q")).mode == "never"


@pytest.mark.parametrize(
    ("fields", "who"),
    [
        ({"labels": {"workflows.argoproj.io/workflow": "w"}}, "the Argo workflow"),
        ({"labels": {"dag_id": "train"}}, "the Airflow task"),
        ({"labels": {"faultline/retries-left": "2"}}, "the job's controller, which has retries left"),
        ({"labels": {"faultline/retries-left": "0"}}, None),
        ({"labels": {"app": "x"}}, None),
        ({"scheduler": "kubernetes", "job_id": "ml/Deployment/web"}, "the Deployment web"),
        ({"scheduler": "kubernetes", "job_id": "ml/Job/t", "pod": "t-x"}, "the Job t, of which this was one pod"),
        ({"scheduler": "kubernetes", "job_id": "ml/Job/t"}, None),
        ({"scheduler": "kubernetes", "job_id": "ml/Pod/t", "pod": "t"}, None),
    ],
)
def test_another_retrier_is_seen(fields: dict[str, Any], who: str | None) -> None:
    assert facts(**fields).retrier == who


def test_request_checkpoint_array_and_wait_are_read() -> None:
    found = facts(
        job_id="17_4",
        requested={"memory_bytes": 5},
        checkpoint={"uri": "c", "step": 3},
        submitted_at="2026-11-01T01:00:00Z",
        started_at="2026-11-01T01:10:00Z",
    )
    assert (found.memory_requested, found.checkpoint.uri, found.array_task, found.queue_wait_s) == (5, "c", True, 600)
    assert not facts().array_task
    assert facts(submitted_at="2026-11-01T05:00:00Z", started_at="2026-11-01T01:10:00Z").queue_wait_s == 0
