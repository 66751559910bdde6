import copy
from typing import Any

import pytest

from tests.service.formats.examples import event, load, skipped, wrong_field


def job(**change: Any) -> dict[str, Any]:
    return {**copy.deepcopy(load("slurm_accounting")), **change}


def state(*current: str) -> dict[str, Any]:
    return {"state": {"current": list(current), "reason": "None"}}


def codes(code: int | None, signal: int | None = None) -> dict[str, Any]:
    return {
        "status": ["ERROR"],
        "return_code": {"set": code is not None, "infinite": False, "number": code or 0},
        "signal": {"id": {"set": signal is not None, "infinite": False, "number": signal or 0}, "name": ""},
    }


def test_a_job_of_the_accounting_is_read_as_its_record_of_the_plugin() -> None:
    found, record = event(load("slurm_accounting")), event(load("slurm"))
    assert found.restart_count == 1
    here = found.model_copy(update={"restart_count": None, "command": record.command, "uid": record.uid})
    assert here == record


@pytest.mark.parametrize(
    ("current", "status"),
    [
        (["COMPLETED"], "succeeded"),
        (["TIMEOUT"], "timeout"),
        (["NODE_FAIL", "REQUEUED"], "node_fail"),
        (["COMPLETED", "COMPLETING"], "succeeded"),
        (["CANCELLED"], "cancelled"),
    ],
)
def test_the_base_state_tells_how_a_job_ended(current: list[str], status: str) -> None:
    assert event(job(**state(*current))).status == status


@pytest.mark.parametrize("current", [["PENDING", "REQUEUED"], ["RUNNING"], ["REQUEUED"]])
def test_a_job_that_goes_on_is_skipped(current: list[str]) -> None:
    assert current[0] in skipped(job(**state(*current)))


@pytest.mark.parametrize(
    ("given", "current", "expected"),
    [
        (codes(1), "FAILED", (1, None)),
        (codes(None, 9), "FAILED", (None, 9)),
        (codes(0, 125), "OUT_OF_MEMORY", (None, None)),
        (codes(0, 1), "NODE_FAIL", (None, None)),
        (codes(0), "TIMEOUT", (None, None)),
        (codes(None), "FAILED", (None, None)),
        ({"status": "ERROR", "return_code": 7}, "FAILED", (7, None)),
        ({}, "FAILED", (None, None)),
    ],
)
def test_exit_codes_mean_what_they_mean_in_the_plugins_record(
    given: dict[str, Any], current: str, expected: tuple[int | None, int | None]
) -> None:
    found = event(job(exit_code=given, **state(current)))
    assert (found.exit_code, found.signal) == expected


def test_tasks_of_arrays_and_parts_of_heterogeneous_jobs_have_their_own_ids() -> None:
    index = {"set": True, "infinite": False, "number": 4}
    assert event(job(array={"job_id": 31870, "task_id": index})).job_id == "31870_4"
    assert event(job(het={"job_id": 31870, "job_offset": index})).job_id == "31870+4"


def test_a_job_without_a_limit_a_start_or_nodes() -> None:
    unlimited = {"set": False, "infinite": True, "number": 0}
    times = {**load("slurm_accounting")["time"], "limit": unlimited, "start": 0}
    found = event(job(time=times, nodes="None assigned", **state("CANCELLED")))
    assert (found.time_limit_s, found.started_at, found.nodes, found.logs) == (None, None, (), ())


def test_paths_that_are_not_expanded_are_expanded_here() -> None:
    found = event(job(stdout_expanded="", stderr_expanded=""))
    assert [ref.uri for ref in found.logs] == [ref.uri for ref in event(load("slurm")).logs]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"job_id": "31877"}, "job_id"),
        ({"job_id": 0}, "job_id"),
        ({"state": {"current": ["EXPLODED"]}}, "state.current"),
        ({"state": {"current": []}}, "state.current"),
        ({"time": {"end": 0}}, "time.end"),
        ({"time": {"end": "now"}}, "time.end"),
        ({"array": {"job_id": "x"}}, "array.job_id"),
        ({"nodes": "a[1-"}, "nodes"),
        ({"exit_code": codes(3000)}, "exit_code"),
        ({"exit_code": {"return_code": "1"}}, "exit_code.return_code"),
        ({"tres": {"allocated": [{"type": "cpu", "count": -1}]}}, "tres.allocated[0].count"),
        ({"user": 7}, "user"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], field: str) -> None:
    assert wrong_field(job(**change)) == field
