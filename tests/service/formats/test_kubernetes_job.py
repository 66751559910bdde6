import copy
from typing import Any

import pytest

from tests.service.formats.examples import event, load, skipped, wrong_field


def job(*conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    obj = copy.deepcopy(load("job"))
    obj["status"] = {"startTime": "2026-11-18T09:00:01Z", "conditions": list(conditions), **status}
    return obj


def condition(kind: str, reason: str | None = None, at: str | None = "2026-11-18T11:00:00Z") -> dict[str, Any]:
    return {"type": kind, "status": "True", "reason": reason, "message": "words", "lastTransitionTime": at}


def test_a_job_past_its_deadline() -> None:
    found = event(load("job"))
    assert (found.job_id, found.status, found.reason) == ("nlp/Job/bert-ft", "timeout", "DeadlineExceeded")
    assert found.ended_at.isoformat() == "2026-11-18T11:30:31+00:00"
    assert (found.gpus, found.queue, found.time_limit_s) == (32, "a100", 9000)
    assert found.requested is not None
    assert (found.requested.cpus, found.requested.memory_bytes) == (8, 4 * 2**30)


@pytest.mark.parametrize("reason", ["BackoffLimitExceeded", "PodFailurePolicy", "MaxFailedIndexesExceeded"])
def test_a_job_whose_pods_failed(reason: str) -> None:
    found = event(job(condition("FailureTarget", reason), condition("Failed", reason)))
    assert (found.status, found.reason, found.message) == ("failed", reason, "words")


def test_a_complete_job_ends_at_its_completion() -> None:
    found = event(job(condition("Complete"), completionTime="2026-11-18T10:59:00Z"))
    assert (found.status, found.ended_at.isoformat()) == ("succeeded", "2026-11-18T10:59:00+00:00")


@pytest.mark.parametrize(
    "conditions", [(), (condition("FailureTarget"),), (condition("SuccessCriteriaMet"),), ({"type": "Failed"},)]
)
def test_a_running_job_is_not_an_end(conditions: tuple[dict[str, Any], ...]) -> None:
    assert "not ended" in skipped(job(*conditions))


def test_a_job_held_back_by_its_queue_is_no_end_but_one_stopped_midway_is() -> None:
    assert "not ended" in skipped(job(condition("Suspended", "JobSuspended", "2026-11-18T09:00:01Z")))
    first = event(job(condition("Suspended", "JobSuspended", "2026-11-18T09:30:00Z")))
    second = event(job(condition("Suspended", "JobSuspended", "2026-11-18T10:30:00Z")))
    assert first.status == "cancelled"
    assert len({first.key(), second.key(), event(job(condition("Failed"))).key()}) == 3


def test_a_deleted_job_was_cancelled() -> None:
    gone = job()
    gone["metadata"]["managedFields"] = [{"time": "2026-11-18T09:30:00Z"}, {"time": "2026-11-18T09:40:00Z"}]
    found = event({"type": "DELETED", "object": gone})
    assert (found.status, found.ended_at.isoformat()) == ("cancelled", "2026-11-18T09:40:00+00:00")
    assert event({"type": "DELETED", "object": load("job")}).key() == event(load("job")).key()


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        (job(condition("Failed", at=None)), "status.conditions"),
        (job(condition("Failed", at="noon")), "status.conditions[0].lastTransitionTime"),
        ({**job(), "status": []}, "status"),
        ({**job(), "metadata": {}}, "metadata.name"),
        ({**job(condition("Failed")), "metadata": {"name": "x", "labels": {"a": 1}}}, "metadata.labels.a"),
    ],
)
def test_a_wrong_field_is_named(obj: dict[str, Any], field: str) -> None:
    assert wrong_field(obj) == field
