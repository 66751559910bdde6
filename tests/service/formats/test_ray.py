from typing import Any

import pytest

from tests.service.formats.examples import event, load, skipped, wrong_field


def test_a_job_of_the_jobs_api() -> None:
    found = event(load("ray"))
    assert (found.job_id, found.status, found.exit_code) == ("raysubmit_5Zt", "failed", 1)
    assert found.started_at is not None
    assert found.started_at.isoformat() == "2026-11-18T09:01:00+00:00"
    assert (found.reason, found.message) == (
        "JOB_ENTRYPOINT_COMMAND_ERROR",
        "Job entrypoint command failed with exit code 1",
    )
    assert [(ref.stream, ref.tail) for ref in found.logs] == [("stdout", "ValueError: lr must be positive\n")]
    assert found.user == "mira"


def test_environment_variables_are_not_kept() -> None:
    assert "never-kept" not in event(load("ray")).model_dump_json()


@pytest.mark.parametrize(("state", "status"), [("SUCCEEDED", "succeeded"), ("STOPPED", "cancelled")])
def test_the_status_tells_how_a_job_ended(state: str, status: str) -> None:
    assert event({**load("ray"), "status": state}).status == status


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_a_job_that_waits_or_runs_is_skipped(state: str) -> None:
    assert state in skipped({**load("ray"), "status": state})


def test_a_negative_exit_code_is_a_signal() -> None:
    found = event({**load("ray"), "driver_exit_code": -9})
    assert (found.exit_code, found.signal) == (None, 9)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "Job entrypoint command failed with exit code 3, last available logs (truncated to 20,000 chars):\nx",
            (3, None),
        ),
        ("Job entrypoint command failed with exit code -9", (None, 9)),
        ("Job supervisor actor died: exit code 1", (None, None)),
    ],
)
def test_without_a_field_the_exit_code_is_that_of_the_message(words: str, expected: tuple[int | None, ...]) -> None:
    found = event({**load("ray"), "driver_exit_code": None, "message": words})
    assert (found.exit_code, found.signal) == expected


def test_a_job_of_a_driver_has_only_a_job_id() -> None:
    assert event({**load("ray"), "submission_id": None, "message": "plain words"}).job_id == "02000000"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"status": "LOST"}, "status"),
        ({"end_time": None}, "end_time"),
        ({"end_time": "now"}, "end_time"),
        ({"end_time": 2**53}, "end_time"),
        ({"driver_exit_code": 300}, "exit_code"),
        ({"driver_exit_code": -3000}, "driver_exit_code"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"submission_id": None, "job_id": None}, "submission_id"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], field: str) -> None:
    assert wrong_field({**load("ray"), **change}) == field
