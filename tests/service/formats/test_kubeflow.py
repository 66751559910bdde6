import copy
from typing import Any

import pytest

from service.errors import UnreadableRecord
from tests.service.formats.examples import event, load, read, skipped


def with_condition(name: str, **condition: Any) -> dict[str, Any]:
    obj = copy.deepcopy(load(name))
    base = {"status": "True", "lastTransitionTime": "2026-11-18T10:00:00Z"}
    obj["status"] = {"conditions": [{**base, **condition}]}
    return obj


def test_a_pytorch_job_that_failed() -> None:
    found = event(load("pytorchjob"))
    assert (found.job_id, found.status, found.framework) == ("nlp/PyTorchJob/gpt-s", "failed", "pytorch")
    assert (found.gpus, found.image, found.time_limit_s) == (16, "registry.example/gpt:3", 3600)
    assert "1 Worker replica(s) failed" in (found.message or "")
    assert found.ended_at.isoformat() == "2026-11-18T09:40:00+00:00"


def test_a_train_job_that_failed() -> None:
    found = event(load("trainjob"))
    assert (found.job_id, found.status, found.reason) == ("nlp/TrainJob/gpt-t", "failed", "ReachedMaxRestarts")
    assert (found.gpus, found.framework, found.command) == (16, "pytorch", "torchrun pretrain.py")


@pytest.mark.parametrize(
    ("name", "condition", "status"),
    [
        ("pytorchjob", {"type": "Succeeded"}, "succeeded"),
        ("trainjob", {"type": "Complete"}, "succeeded"),
        ("trainjob", {"type": "Failed", "reason": "DeadlineExceeded"}, "timeout"),
        ("pytorchjob", {"type": "Suspended"}, "cancelled"),
        (
            "pytorchjob",
            {
                "type": "Failed",
                "reason": "PyTorchJobFailed",
                "message": "Job gpt-s has failed because it was active longer than specified deadline",
            },
            "timeout",
        ),
        (
            "pytorchjob",
            {
                "type": "Failed",
                "reason": "PyTorchJobFailed",
                "message": "Job gpt-s has failed because it has reached the specified backoff limit",
            },
            "failed",
        ),
    ],
)
def test_the_last_condition_tells_how_a_job_ended(name: str, condition: dict[str, str], status: str) -> None:
    assert event(with_condition(name, **condition)).status == status


@pytest.mark.parametrize("name", ["pytorchjob", "trainjob"])
def test_what_runs_restarts_or_waits_is_no_end(name: str) -> None:
    for kind in ("Created", "Running", "Restarting"):
        assert "not ended" in skipped(with_condition(name, type=kind))
    assert "not ended" in skipped(with_condition(name, type="Suspended", lastTransitionTime="2026-11-18T09:00:01Z"))


def test_a_deleted_one_was_cancelled() -> None:
    obj = with_condition("trainjob", type="Running")
    obj["metadata"]["deletionTimestamp"] = "2026-11-18T09:30:00Z"
    assert event({"type": "DELETED", "object": obj}).status == "cancelled"


def test_a_failure_without_a_time_is_refused() -> None:
    with pytest.raises(UnreadableRecord, match=r"status\.conditions"):
        read(with_condition("trainjob", type="Failed", lastTransitionTime=None))
