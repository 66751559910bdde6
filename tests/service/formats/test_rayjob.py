import copy
from typing import Any

import pytest

from service.errors import UnreadableRecord
from tests.service.formats.examples import event, load, read, skipped


def rayjob(**status: Any) -> dict[str, Any]:
    obj = copy.deepcopy(load("rayjob"))
    obj["status"] |= status
    return obj


def test_a_rayjob_that_failed() -> None:
    found = event(load("rayjob"))
    assert (found.job_id, found.status, found.reason) == ("nlp/RayJob/tune-9", "failed", "AppFailed")
    assert (found.attempt, found.command) == (0, "python tune.py")
    assert found.exit_code == 1  # of the message
    assert found.logs[0].tail == "ValueError: lr must be positive\n"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}, "succeeded"),
        ({"jobDeploymentStatus": "Complete", "jobStatus": "STOPPED"}, "cancelled"),
        ({"jobDeploymentStatus": "Failed", "jobStatus": "", "reason": "SubmissionFailed"}, "failed"),
        ({"jobDeploymentStatus": "Failed", "jobStatus": "RUNNING", "reason": "DeadlineExceeded"}, "timeout"),
    ],
)
def test_both_statuses_tell_how_a_job_ended(status: dict[str, str], expected: str) -> None:
    assert event(rayjob(**status)).status == expected


def test_one_that_kuberay_refuses_has_failed() -> None:
    """It has no end time, since it never ran; one whose cluster runs already goes on."""
    refused = {
        "jobDeploymentStatus": "ValidationFailed",
        "reason": "ValidationFailed",
        "endTime": None,
        "jobStatus": "",
    }
    obj = rayjob(**refused, rayClusterName="")
    found = event(obj)
    assert (found.status, found.reason) == ("failed", "ValidationFailed")
    assert found.ended_at == found.submitted_at
    assert "ValidationFailed" in skipped(rayjob(**refused, rayClusterName="tune-9-x7k4q"))


@pytest.mark.parametrize("deployment", ["Initializing", "Running", "Retrying", "Suspended"])
def test_a_job_that_goes_on_is_skipped(deployment: str) -> None:
    assert deployment in skipped(rayjob(jobDeploymentStatus=deployment))


def test_a_deleted_one_was_cancelled() -> None:
    obj = rayjob(jobDeploymentStatus="Running", endTime=None)
    obj["metadata"]["deletionTimestamp"] = "2026-11-18T09:30:00Z"
    assert event({"type": "DELETED", "object": obj}).status == "cancelled"


def test_an_end_without_a_time_is_refused() -> None:
    with pytest.raises(UnreadableRecord, match=r"status\.endTime"):
        read(rayjob(endTime=None))
