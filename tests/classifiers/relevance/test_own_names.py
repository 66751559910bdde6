"""What a job is called by its logs, its scheduler and the pods that started with it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import JobFacts, NodeEvent
from classifiers.relevance.own_names import own_names, own_numbers

START = datetime(2026, 9, 16, 6, 30, tzinfo=UTC)
JOB = JobFacts(status="failed", nodes=("gpu-14",), started_at=START)


def started(pod: str, *, node: str = "gpu-14", after_s: float = 2) -> NodeEvent:
    return NodeEvent(f"Normal Started pod/{pod}: Started container main", START + timedelta(seconds=after_s), node)


def test_the_scheduler_and_the_logs_name_the_objects_of_a_job() -> None:
    job = replace(JOB, message="PyTorchJob vision/clip-b16 failed: master exited 1")
    names = own_names(job, ["waiting for RayCluster fraud-gnn: 2/4 workers", "job.batch/bert-7 started"], [])
    assert {"clip-b16", "fraud-gnn", "bert-7"} <= names


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("slurmstepd: error: *** JOB 41207 ON n7 CANCELLED", {"41207"}),
        ("srun: Job step StepId=41207.0 aborted", {"41207"}),
        ("SLURM_JOB_ID=41207", {"41207"}),
        ("Job ID: 41207", {"41207"}),
        ("step 41207 loss 2.1", set()),
        ("all 3 jobs done in 41207 s", set()),
    ],
)
def test_logs_name_the_number_of_a_job(text: str, numbers: set[str]) -> None:
    assert own_numbers(JOB, [text]) == numbers
    assert own_numbers(replace(JOB, message=text), []) == numbers


def test_a_pod_that_started_with_the_job_on_its_node_is_its_own() -> None:
    assert own_names(JOB, [], [started("clip-b16-master-0"), started("clip-b16-worker-1")]) == {"clip-b16"}


@pytest.mark.parametrize(
    "other",
    [
        started("etl-nightly-0"),  # two jobs started together: neither is known to be this one
    ],
)
def test_pods_of_two_names_name_no_job(other: NodeEvent) -> None:
    assert own_names(JOB, [], [started("clip-b16-master-0"), other]) == frozenset()


@pytest.mark.parametrize("event", [started("clip-0", node="gpu-15"), started("clip-0", after_s=900)])
def test_a_pod_of_another_node_or_time_is_not_the_jobs(event: NodeEvent) -> None:
    assert own_names(JOB, [], [event]) == frozenset()
