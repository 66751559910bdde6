"""Whose attempt a Pod, Job or JobSet is: owner references decide, and labels where the reference names a middle one."""

import copy
from typing import Any

import pytest

from tests.service.formats.examples import event, load

JOBSET_LABELS = {"jobset.sigs.k8s.io/jobset-name": "llm"}


def owned(name: str, /, *, labels: dict[str, str] | None = None, **owner: Any) -> dict[str, Any]:
    """An example that has ended, under a controller."""
    obj = copy.deepcopy(load(name))
    obj["metadata"] |= {"labels": labels or {}, "ownerReferences": [{"controller": True, **owner}] if owner else []}
    return obj


@pytest.mark.parametrize(
    ("labels", "owner", "job_id"),
    [
        (JOBSET_LABELS, {"kind": "JobSet", "name": "llm"}, "nlp/JobSet/llm"),
        (
            {**JOBSET_LABELS, "trainer.kubeflow.org/trainjob-ancestor-step": "trainer"},
            {"kind": "JobSet", "name": "llm"},
            "nlp/TrainJob/llm",
        ),
        ({}, {"kind": "RayJob", "name": "sweep"}, "nlp/RayJob/sweep"),
    ],
)
def test_a_job_under_a_controller_is_an_attempt_of_it(
    labels: dict[str, str], owner: dict[str, str], job_id: str
) -> None:
    found = event(owned("job", labels=labels, **owner))
    assert (found.job_id, found.name, found.pod) == (job_id, job_id.rpartition("/")[2], "bert-ft")


def test_a_controller_without_an_end_of_its_own_ends_with_its_job() -> None:
    found = event(owned("job", kind="AppWrapper", name="w"))
    assert (found.job_id, found.name, found.pod) == ("nlp/AppWrapper/w", "w", None)


def test_a_job_of_a_cron_job_is_a_job_of_its_own() -> None:
    found = event(owned("job", kind="CronJob", name="nightly"))
    assert (found.job_id, found.name, found.pod) == ("nlp/Job/bert-ft", "bert-ft", None)


def test_a_job_that_kueue_queues_is_a_job_of_its_own() -> None:
    found = event(owned("job", labels={"kueue.x-k8s.io/queue-name": "gpus"}))
    assert (found.job_id, found.pod, found.queue) == ("nlp/Job/bert-ft", None, "gpus")


def test_a_pod_of_a_job_of_volcano_is_no_pod_of_the_batch_job_of_that_name() -> None:
    found = event(owned("pod", kind="Job", name="pre", apiVersion="batch.volcano.sh/v1alpha1"))
    assert (found.job_id, found.name) == ("nlp/Job.batch.volcano.sh/pre", "pre")
    assert event(owned("pod", kind="Job", name="pre", apiVersion="batch/v1")).job_id == "nlp/Job/pre"


def test_all_pods_of_a_leader_worker_set_are_of_one_job() -> None:
    labels = {"leaderworkerset.sigs.k8s.io/name": "tune"}
    for owner in ("tune", "tune-0"):
        pod = owned("pod", labels=labels, kind="StatefulSet", name=owner, apiVersion="apps/v1")
        assert event(pod).job_id == "nlp/LeaderWorkerSet/tune"


def test_all_pods_of_a_group_of_kueue_are_of_one_job() -> None:
    pod = owned("pod", labels={"kueue.x-k8s.io/pod-group-name": "group"})
    assert (event(pod).job_id, event(pod).pod) == ("nlp/Workload/group", "bert-ft-2-x7k4q")
    pod["metadata"]["ownerReferences"] = [{"kind": "PyTorchJob", "name": "p", "controller": True}]
    assert event(pod).job_id == "nlp/PyTorchJob/p"


def jobset(kind: str, reason: str, **meta: Any) -> dict[str, Any]:
    template = copy.deepcopy(load("job")["spec"])
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": "llm",
            "namespace": "nlp",
            "uid": "u1",
            "creationTimestamp": "2026-11-18T09:00:00Z",
            **meta,
        },
        "spec": {"replicatedJobs": [{"name": "workers", "replicas": 2, "template": {"spec": template}}]},
        "status": {
            "restarts": 3,
            "conditions": [
                {
                    "type": kind,
                    "status": "True",
                    "reason": reason,
                    "message": "words",
                    "lastTransitionTime": "2026-11-18T11:00:00Z",
                }
            ],
        },
    }


def test_the_end_of_a_job_set() -> None:
    found = event(jobset("Failed", "ReachedMaxRestarts"))
    assert (found.job_id, found.pod, found.status, found.reason) == (
        "nlp/JobSet/llm",
        None,
        "failed",
        "ReachedMaxRestarts",
    )
    one = event(load("job"))
    assert (found.gpus, found.image, found.restart_count) == (2 * (one.gpus or 0), one.image, 3)
    assert event(jobset("Completed", "AllJobsCompleted")).status == "succeeded"


def test_a_job_set_of_a_train_job_is_an_attempt_of_it() -> None:
    owner = {"kind": "TrainJob", "name": "ft", "controller": True, "apiVersion": "trainer.kubeflow.org/v1alpha1"}
    found = event(jobset("Failed", "FailedJobs", ownerReferences=[owner]))
    assert (found.job_id, found.name, found.pod) == ("nlp/TrainJob/ft", "ft", "llm")
