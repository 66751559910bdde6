from typing import Any

import pytest

from tests.service.formats.examples import event, load, skipped, wrong_field


def test_an_environment_becomes_an_event() -> None:
    found = event(load("slurm_epilog"))
    assert (found.cluster, found.job_id, found.status, found.exit_code) == ("aurora", "31877", "failed", 139)
    assert found.nodes == ("a07", "a08")
    assert found.key() == event(load("slurm")).key()


@pytest.mark.parametrize(
    ("codes", "status"), [("0:0", "succeeded"), ("0:125", "out_of_memory"), ("0:9", "failed"), ("2:0", "failed")]
)
def test_without_a_state_the_exit_code_tells(codes: str, status: str) -> None:
    assert event({**load("slurm_epilog"), "SLURM_JOB_EXIT_CODE2": codes}).status == status


def test_a_lost_node_without_a_state_is_the_end_that_the_plugin_reports() -> None:
    found = event({**load("slurm_epilog"), "SLURM_JOB_EXIT_CODE2": "0:1"})
    assert (found.status, found.exit_code, found.signal) == ("node_fail", None, None)
    assert found.key() == event({**load("slurm"), "state": "NODE_FAIL", "exit_code": "0:1"}).key()


def test_a_state_in_addition_to_the_environment_gives_more_facts() -> None:
    assert event({**load("slurm_epilog"), "SLURM_JOB_STATE": "TIMEOUT"}).status == "timeout"
    assert event({**load("slurm_epilog"), "SLURM_JOB_STATE": "COMPLETING"}).status == "failed"
    assert "PENDING" in skipped({**load("slurm_epilog"), "SLURM_JOB_STATE": "PENDING"})


def test_array_tasks_and_restarts() -> None:
    found = event(
        {**load("slurm_epilog"), "SLURM_ARRAY_JOB_ID": "9", "SLURM_ARRAY_TASK_ID": "0", "SLURM_RESTART_COUNT": "2"}
    )
    assert (found.job_id, found.restart_count) == ("9_0", 2)


def test_times_may_be_text_in_addition_to_the_environment() -> None:
    env = {k: v for k, v in load("slurm_epilog").items() if k not in {"SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME"}}
    found = event({**env, "ended_at": "2026-11-18T11:30:12Z", "SLURM_RESTART_COUNT": 1})
    assert (found.started_at, found.attempt) == (None, 1)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"SLURM_JOB_ID": "x"}, "SLURM_JOB_ID"),
        ({"SLURM_JOB_ID": ""}, "SLURM_JOB_ID"),
        ({"SLURM_JOB_END_TIME": None}, "SLURM_JOB_END_TIME"),
        ({"SLURM_JOB_END_TIME": "9" * 16}, "SLURM_JOB_END_TIME"),
        ({"SLURM_JOB_EXIT_CODE2": None}, "SLURM_JOB_EXIT_CODE2"),
        ({"SLURM_JOB_EXIT_CODE2": "x"}, "SLURM_JOB_EXIT_CODE2"),
        ({"SLURM_JOB_STATE": "LOST"}, "SLURM_JOB_STATE"),
        ({"SLURM_JOB_NODELIST": "a["}, "SLURM_JOB_NODELIST"),
    ],
)
def test_a_wrong_variable_is_named(change: dict[str, Any], field: str) -> None:
    assert wrong_field({**load("slurm_epilog"), **change}) == field


def test_the_number_of_the_user_is_kept() -> None:
    assert event({**load("slurm_epilog"), "SLURM_JOB_UID": "4107"}).uid == 4107
    assert event(load("slurm_epilog")).uid is None
